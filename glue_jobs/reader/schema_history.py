"""Changes of a table's schema between its snapshots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from cdclake.jobs.reader.catalog import CatalogTable, TableSnapshot

Fields = tuple[Mapping[str, Any], ...]


class SchemaChange(NamedTuple):
    """Column that a snapshot has in another form than the snapshot before."""

    snapshot: TableSnapshot | None  # the first with it; None: no commit has it yet
    column: str
    change: str


def schema_history(table: CatalogTable) -> Iterator[SchemaChange]:
    """Yield the changes since the oldest retained snapshot, in the order of time.

    Columns are compared by their field id, so a renamed column is not a new one.
    """
    snapshots = sorted(table.snapshots.values(), key=lambda each: each.committed_ms)
    versions: list[tuple[TableSnapshot | None, Fields]] = [(s, s.columns) for s in snapshots]
    versions.append((None, table.columns))
    for (_, before), (snapshot, after) in pairwise(versions):
        for column, change in _differences(before, after):
            yield SchemaChange(snapshot, column, change)


def is_added_after(table: CatalogTable, column: str, milliseconds: int) -> bool:
    """Return whether the column, as far as it is known, was added after that time.

    A column that the table was created without and that the oldest retained snapshot has was added
    at an unknown time before that snapshot.
    """
    number = next(each["id"] for each in table.columns if each["name"] == column)
    if number in table.first_ids:
        return False
    with_it = (
        snapshot.committed_ms
        for snapshot in table.snapshots.values()
        if any(each["id"] == number for each in snapshot.columns)
    )
    return milliseconds < min(with_it, default=milliseconds + 1)


def _differences(before: Fields, after: Fields) -> Iterator[tuple[str, str]]:
    known = {column["id"]: column for column in before}
    for column in after:
        earlier = known.pop(column["id"], None)
        if earlier is None:
            yield column["name"], f"added as {_type(column)}"
            continue
        if earlier["name"] != column["name"]:
            yield column["name"], f"renamed from {earlier['name']}"
        if earlier["type"] != column["type"]:
            yield column["name"], f"changed from {_type(earlier)} to {_type(column)}"
    for column in known.values():
        yield column["name"], "dropped"


def _type(column: Mapping[str, Any]) -> str:
    """Return the name of a type, for a nested one its kind."""
    kind = column["type"]
    return str(kind["type"] if isinstance(kind, Mapping) else kind)
