"""`--as-of TIME`: the rows as they were committed in the source, from the changelog alone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import duckdb

from cdclake import naming
from cdclake.errors import InputError
from cdclake.iceberg.as_of_view import as_of_view, committed_through, first_complete
from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.views import history_view
from cdclake.jobs.reader.catalog import CatalogTable
from cdclake.jobs.reader.point_in_time import NOW, past_time
from cdclake.jobs.reader.relations import TOO_EARLY, refusal_of, relation, scan
from cdclake.plan import Table

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def commit_micros(text: str) -> int:
    """Parse a time as `--at` takes it, in microseconds since 1970.

    Raises InputError if it is invalid or in the future.
    """
    wrong = f"--as-of {text!r} is not a time"
    remedy = "write a time like 2026-11-21T14:30:00Z or -5m"
    return (past_time(text, "--as-of", wrong, remedy) - _EPOCH) // timedelta(microseconds=1)


def define_as_of(
    session: duckdb.DuckDBPyConnection,
    table: Table,
    log: CatalogTable,
    micros: int,
    *,
    schema: str,
) -> dict[str, str]:
    """Return by name the SELECT of the table's relations as of that commit time.

    `<t>_changes` and `<t>_history` have the events committed until then, `<t>_current` the rows.
    The state is of no such time: a query of `<t>` is refused. Raises InputError if the changelog
    does not hold everything since that time.
    """
    whole = scan(log, NOW)
    _check(session, table, log, whole, micros)
    changes = relation(schema, table.changes)
    state = f"{TOO_EARLY}{table.name} is not of that time; query {naming.current_name(table.name)}"
    return {
        table.changes: committed_through(f"({whole})", micros, DUCKDB),
        table.name: refusal_of(log, state),
        naming.current_name(table.name): as_of_view(
            table, changes=changes, micros=micros, dialect=DUCKDB
        ),
        naming.history_name(table.name): history_view(table, changes=changes, dialect=DUCKDB),
    }


def _check(
    session: duckdb.DuckDBPyConnection, table: Table, log: CatalogTable, whole: str, micros: int
) -> None:
    row = session.execute(first_complete(table, changes=whole, dialect=DUCKDB)).fetchone()
    since = row[0] if row is not None else None
    collapsed = _midnight(log.collapsed_before)
    oldest = max((time for time in (since, collapsed) if time is not None), default=None)
    if oldest is not None and micros < (oldest - _EPOCH) // timedelta(microseconds=1):
        is_collapsed = oldest == collapsed
        read = (
            "it was first polled then"
            if table.delivery == "poll"
            else "its first snapshot ended then"
        )
        why = "older events are collapsed" if is_collapsed else read
        raise InputError(
            f"the changelog of {table.name} is complete since {oldest.isoformat()}: {why}",
            f"ask for --as-of {oldest.isoformat()} or later",
        )


def _midnight(day: date | None) -> datetime | None:
    return None if day is None else datetime(day.year, day.month, day.day, tzinfo=UTC)
