"""The live rows as of any commit time, from the changelog alone."""

from __future__ import annotations

from cdclake import naming
from cdclake.debezium.position import SNAPSHOT_PHASE
from cdclake.iceberg.dialect import Dialect
from cdclake.iceberg.rebuilt_view import rebuilt_view
from cdclake.plan import Table


def committed_through(changes: str, micros: int, dialect: Dialect) -> str:
    """Return a SELECT of the changelog's events that had been committed at that time."""
    return f"SELECT * FROM {changes} WHERE {naming.COMMITTED_AT} <= {dialect.instant(micros)}"


def as_of_view(table: Table, *, changes: str, micros: int, dialect: Dialect) -> str:
    """Return a SELECT of the declared columns of the rows that lived at that time.

    `micros` are microseconds since 1970 in the source's commit times. Exact from the time of
    `first_complete` on, as long as the changelog keeps every event since.
    """
    log = committed_through(changes, micros, dialect)
    rows = rebuilt_view(table, changes=log, floor="", dialect=dialect)
    columns = ", ".join(dialect.name(column.name) for column in table.columns)
    return f"SELECT {columns} FROM ({rows}) AS rebuilt"


def first_complete(changes: str) -> str:
    """Return a SELECT of the time since which the changelog has every row of the source.

    That is when the last row of the first snapshot was read; NULL if there was none.
    """
    first = f"(SELECT min({naming.EPOCH}) FROM {changes})"
    return (
        f"SELECT max({naming.COMMITTED_AT}) FROM {changes} WHERE {naming.OP} = 'r'"
        f" AND {naming.PHASE} = {SNAPSHOT_PHASE} AND {naming.EPOCH} = {first}"
    )
