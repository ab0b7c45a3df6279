"""Checks of copies in another format: their names, and the columns that they can hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cdclake import naming
from cdclake.config.checks.connectors import sink_tables
from cdclake.config.checks.put_streams import put_tables
from cdclake.config.document import Document, Location
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem, did_you_mean
from cdclake.hudi_copy import catalog_entries

_FOLDER_TYPES = ("string", "int", "bigint", "boolean", "date")
_RESERVED_PREFIX = "_hoodie_"


def check_publish(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Check each copy against its table, and its names against everything else in the lake."""
    taken = {name: owner for table in tables for name, owner in _names(table)}
    taken |= put_tables(document) | sink_tables(document, tables)
    taken |= {name: f"derived: {name}" for name in document.mapping("derived")}
    taken[naming.QUARANTINE] = "cdclake"
    for table in tables:
        for place, entry in _copies(table):
            yield from _check_name(document, table, place, entry, taken)
            yield from _check_partition(document, table, (*place, "partition_by"), entry)
        if _copies(table):
            yield from _check_columns(document, table)


def _names(table: TableOutline) -> Iterator[tuple[str, str]]:
    for name in naming.lake_objects(table.name) if table.name else ():
        yield name, table.spelled


def _copies(table: TableOutline) -> list[tuple[Location, Mapping[str, Any]]]:
    """Return the Hudi entries that are mappings, each with its place."""
    listed = table.entry.get("publish")
    return [
        ((*table.location, "publish", index, "hudi"), entry["hudi"])
        for index, entry in enumerate(listed if isinstance(listed, list) else ())
        if isinstance(entry, dict) and isinstance(entry.get("hudi"), dict)
    ]


def _check_name(
    document: Document,
    table: TableOutline,
    place: Location,
    entry: Mapping[str, Any],
    taken: dict[str, str],
) -> Iterator[Problem]:
    """Check the copy's names, and add them to those that are taken."""
    declared = entry.get("name")
    name = declared if isinstance(declared, str) else table.name and naming.hudi_name(table.name)
    if name is None or naming.LAKE_NAME.fullmatch(name) is None:
        return
    # The folder of a merge-on-read copy has the name without a suffix.
    names = dict.fromkeys((name, *catalog_entries(name, str(entry.get("type", "cow")))))
    met = next((each for each in names if each in taken), None)
    if met is not None:
        at = (*place, "name") if isinstance(declared, str) else place
        message = f"the lake already has {met!r}, of {taken[met]!r}"
        yield document.problem(at, message, "give the copy another `name:`")
    taken |= dict.fromkeys(names, f"a copy of {table.spelled}")


def _check_partition(
    document: Document, table: TableOutline, place: Location, entry: Mapping[str, Any]
) -> Iterator[Problem]:
    by = entry.get("partition_by")
    if not isinstance(by, str):
        return
    column = table.column(by)
    if column is None:
        known = [each.source for each in table.columns]
        message = f"the copy of {table.spelled!r} is partitioned by {by!r}, which is not declared"
        remedy = did_you_mean(by, known) or f"its columns are {', '.join(known)}"
        yield document.problem(place, message, remedy)
    elif column.excluded:
        message = f"the copy of {table.spelled!r} is partitioned by the excluded {by!r}"
        yield document.problem(place, message, "partition by a column that is not excluded")
    elif column.type is not None and column.type.state not in _FOLDER_TYPES:
        message = f"{by!r} is of the type {column.type}, whose values cannot name folders"
        remedy = "partition by a column of text, whole numbers, booleans or dates"
        yield document.problem(place, message, remedy)


def _check_columns(document: Document, table: TableOutline) -> Iterator[Problem]:
    for column in table.columns:
        if not column.excluded and column.name.startswith(_RESERVED_PREFIX):
            message = f"the column {column.source!r} has a name that Hudi uses for its own columns"
            remedy = f"add `{column.source}: {{exclude: true}}`, or remove `publish:`"
            yield document.key_problem(column.location, message, remedy)
