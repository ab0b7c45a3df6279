"""Tables that a query may read, by the names in its text: a session opens no others."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cdclake import naming
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.reader.relations import names_of, relations_of
from cdclake.plan import Plan, Table

_WORD = re.compile(r"\w+")


def mentioned(plan: Plan, query: str) -> tuple[Table, ...]:
    """Return the tables that the query may read, because its text contains one of their names."""
    words = _words(query)
    return tuple(table for table in plan.all_tables if not words.isdisjoint(names_of(table)))


def _words(query: str) -> frozenset[str]:
    """Return the words of a query in lower case, as all names of the lake are."""
    return frozenset(_WORD.findall(query.lower()))


def mentioned_removed(reader: Reader, query: str) -> tuple[str, ...]:
    """Return the tables that the query may read and that only an earlier plan had."""
    known = {*plain_tables(reader), *(table.name for table in reader.plan.all_tables)}
    stored, words = reader.catalog.names(), _words(query)
    return tuple(
        name
        for name in sorted(stored - known)
        if naming.changes_name(name) in stored and not words.isdisjoint(relations_of(name))
    )


def plain_tables(reader: Reader, query: str | None = None) -> tuple[str, ...]:
    """Return the Iceberg tables without changelog that the query may read, or all of them.

    They are those that producers put records into, and those of queries and of sinks once they are
    written.
    """
    put = (name for stream in reader.plan.put_streams for name in stream.tables)
    written = [name for table in reader.plan.derived for name in table.stored]
    written += reader.plan.sink_tables
    return (*_mentioned_names(put, query), *_written(reader, written, query))


def file_tables(reader: Reader, query: str | None = None) -> tuple[str, ...]:
    """Return the derived tables in plain files that are written, as `plain_tables` does."""
    files = [table.name for table in reader.plan.derived if not table.stored]
    return _written(reader, files, query)


def _written(reader: Reader, names: Iterable[str], query: str | None) -> tuple[str, ...]:
    asked = _mentioned_names(names, query)
    stored = reader.catalog.names() if asked else ()
    return tuple(name for name in asked if name in stored)


def _mentioned_names(names: Iterable[str], query: str | None) -> tuple[str, ...]:
    if query is None:
        return tuple(names)
    words = _words(query)
    return tuple(name for name in names if name in words)
