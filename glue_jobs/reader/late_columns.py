"""Warnings of `--as-of TIME` for columns that a changelog did not have at that time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cdclake import naming
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.reader.catalog import CatalogTable
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.reader.schema_history import is_added_after
from cdclake.plan import Table


def late_columns(
    reader: Reader, tables: Iterable[Table], micros: int
) -> tuple[dict[str, str], ...]:
    """Return a warning for each declared column that may have been added after that commit time.

    The column is NULL in all rows of that time. One that left the file and came back is a new
    column, and its earlier values are in another one.
    """
    return tuple(
        _warning(log, column)
        for log in (reader.catalog.load(table.changes) for table in tables)
        for column in _without_values(reader, log, micros)
    )


def _without_values(reader: Reader, log: CatalogTable, micros: int) -> Iterator[str]:
    """Yield the columns without a value until that time, as the changelog got them later."""
    names = [each["name"] for each in log.columns if not naming.is_ours(each["name"])]
    late = [name for name in names if is_added_after(log, name, micros // 1000)]
    if not late:
        return
    counts = ", ".join(f"count({DUCKDB.name(name)})" for name in late)
    until = f"{naming.COMMITTED_AT} <= {DUCKDB.instant(micros)}"
    with reader.open([], plain=[log.name]) as session:
        row = session.execute(f"SELECT {counts} FROM {DUCKDB.name(log.name)} WHERE {until}")
        found = row.fetchone() or ()
    yield from (name for name, values in zip(late, found, strict=True) if not values)


def _warning(log: CatalogTable, column: str) -> dict[str, str]:
    earlier = naming.dropped_column(column, 1)
    is_again = any(each["name"] == earlier for each in log.columns)
    return {
        "message": (
            f"{log.name}: {column!r} is NULL in all rows of that time: the column was added later,"
            " or at a time that is no longer known"
        ),
        "remedy": (
            f"read the column's values from before it was removed in {earlier!r}"
            if is_again
            else f"leave {column!r} out, or ask for a later time"
        ),
    }
