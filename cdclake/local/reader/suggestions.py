"""Suggestions for a query that names no relation of the lake: the one that is meant."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from cdclake import naming
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.reader.mentioned_tables import plain_tables
from cdclake.jobs.reader.relations import names_of
from cdclake.plan import Table

# DuckDB's guess, which may be one of its own relations.
GUESS = re.compile(r"\n?Did you mean \"[^\n]*\"\??")
_UNKNOWN_NAME = re.compile(
    r"Table with name \"?(\S+?)\"? does not exist|syntax error at or near \"(\w+)\""
)
_LIST = "`cdclake sql 'SHOW TABLES'` lists all of them"


def remedy(reader: Reader, query: str, reason: str) -> str:
    """Name the relation that the refused query means, or some of the lake's."""
    tables = reader.plan.all_tables
    words = {word.lower() for word in re.findall(r"\w+", query)}
    meant = [table for table in tables if {table.table.lower(), table.name.lower()} & words]
    unknown = _UNKNOWN_NAME.search(reason)
    near = nearest(unknown[1] or unknown[2], tables) if unknown and not meant else None
    if near is not None:
        return f"did you mean {near}? {_LIST}"
    named = [naming.current_name(table.name) for table in (meant or tables)[:3]]
    shown = ", ".join([*named, *([] if meant else plain_tables(reader))][:3])
    of = f" for {', '.join(table.source for table in meant[:3])}" if meant else ""
    return f"use relations such as {shown}{of}; {_LIST}"


def nearest(word: str, tables: Iterable[Table]) -> str | None:
    """Return the relation whose name, or whose table's name, is most like the word."""
    relations: dict[str, str] = {}
    for table in tables:
        current = naming.current_name(table.name)
        relations |= {name: name for name in names_of(table)}
        relations |= {table.name: current, table.table.lower(): current}
    found = get_close_matches(word.lower(), relations, n=1, cutoff=0.6)
    return relations[found[0]] if found else None
