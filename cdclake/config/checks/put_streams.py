"""Checks of the streams that producers put records into: those of web logs and of put tables."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cdclake import naming
from cdclake.config import literals
from cdclake.config.checks.firehose import (
    MAX_FUNCTION_BYTES,
    WRAPPING_BYTES,
    bytes_of_a_call,
    fitting_mib,
)
from cdclake.config.checks.puts import put_entries
from cdclake.config.checks.web_logs import web_log_entries
from cdclake.config.document import Document, Location
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem
from cdclake.config.puts_model import PutColumns, PutsEntry
from cdclake.config.weblogs_model import WebLogsEntry
from cdclake.web_logs.model import request_tables

_MIN_REQUEST_BYTES = 190  # an empty request as Fluent Bit sends it
# Short values of a put table's types; any other type has a value of one character.
_SHORT_VALUES: dict[str, object] = {
    "boolean": True,
    "text": "",
    "date": "2026-11-22",
    "timestamp": "2026-11-22T19:00:00",
    "timestamptz": "2026-11-22T19:00:00Z",
}


@dataclass(frozen=True, slots=True)
class _PutStream:
    """Declared stream with its tables, and the bytes of its smallest record."""

    place: Location
    what: str
    tables: Sequence[str]
    record_bytes: int
    entry: WebLogsEntry | PutsEntry


def put_tables(document: Document) -> dict[str, str]:
    """Return the section of each valid table of web logs and of each put table."""
    return {table: str(stream.place[0]) for stream in _streams(document) for table in stream.tables}


def check_names(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check that the streams and their tables have unique names."""
    taken = {
        name: repr(table.spelled)
        for table in tables
        if table.name
        for name in naming.lake_objects(table.name)
    }
    taken[naming.QUARANTINE] = "cdclake"
    domains = document.mapping("firehose", "domains")
    used = {*domains, *(table.name for table in _delivered(tables))}
    for stream in _streams(document):
        name, remedy = str(stream.place[-1]), f"rename the {stream.what}"
        if name in used:
            message = f"a Firehose stream already has the name {name!r}"
            yield document.key_problem(stream.place, message, remedy)
        used.add(name)
        for table in stream.tables:
            if table in taken:
                message = f"the table {table!r} would also be that of {taken[table]}"
                own = (*stream.place, "tables", table)
                place = own if document.get(*own) is not None else stream.place
                yield document.key_problem(place, message, remedy)
                break
            taken[table] = f"the {stream.what} {name!r}"


def check_sizes(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse calls of the function that Lambda does not accept."""
    del tables
    for stream in _streams(document):
        mib, wrapping = stream.entry.function.mib, WRAPPING_BYTES[stream.entry.source]
        if mib > (fits := fitting_mib(stream.record_bytes, wrapping)):
            size = bytes_of_a_call(mib, stream.record_bytes, wrapping)
            yield document.problem(
                (*stream.place, "function", "mib"),
                f"{mib:g} MiB of records of {stream.record_bytes} bytes may take"
                f" {size / 1e6:.1f} MB per call, but the limit of a function is"
                f" {MAX_FUNCTION_BYTES / 1e6:.1f}",
                f"write `function: {{mib: {fits:g}}}` for the {stream.what}",
            )


def _delivered(tables: Sequence[TableOutline]) -> list[TableOutline]:
    return [t for t in tables if t.entry.get("delivery") == "firehose" and "domain" not in t.entry]


def _streams(document: Document) -> Iterator[_PutStream]:
    for name, logs in web_log_entries(document).items():
        made = request_tables(name, logs.route, tuple(logs.statuses))
        yield _PutStream(("weblogs", name), "web logs", made, _MIN_REQUEST_BYTES, logs)
    for name, entry in put_entries(document).items():
        made = tuple(entry.tables or (name,))
        declared: Sequence[PutColumns] = [*(entry.tables or {}).values()] or [entry]
        least = min(_least_record(table) for table in declared)
        yield _PutStream(("puts", name), "put table", made, least, entry)


def _least_record(table: PutColumns) -> int:
    """Return the bytes of the smallest record with a value for each column."""
    types = {field: literals.parse_column_type(each) for field, each in table.columns.items()}
    record = {field: _SHORT_VALUES.get(each.base, 0) for field, each in types.items()}
    return len(json.dumps(record, separators=(",", ":"), ensure_ascii=False).encode())
