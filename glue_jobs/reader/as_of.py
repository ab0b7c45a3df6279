"""`--as-of TIME`: the rows as they were committed in the source, from the changelog alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta

import duckdb

from cdclake import naming
from cdclake.debezium.position import EPOCH_DIGITS
from cdclake.errors import InputError
from cdclake.iceberg.as_of_view import (
    as_of_view,
    committed_through,
    epoch_snapshots,
    first_complete,
)
from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.views import history_view
from cdclake.jobs.iceberg.commit_metadata import state_stamp
from cdclake.jobs.reader.catalog import CatalogTable
from cdclake.jobs.reader.point_in_time import NOW, past_time
from cdclake.jobs.reader.relations import (
    TOO_EARLY,
    applied_at,
    names_of,
    refusal_of,
    refusal_of_lacking,
    relation,
    scan,
    without_commits,
)
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
    tables: Iterable[Table],
    loaded: Mapping[str, CatalogTable],
    micros: int,
    *,
    schema: str,
) -> dict[str, str]:
    """Return by name the SELECT of every relation as of that commit time, from loaded metadata.

    A query is refused of a table that has no changelog, or one that does not hold everything since
    that time.
    """
    defined: dict[str, str] = {}
    for table in tables:
        log, state = loaded[table.changes], loaded[table.name]
        try:
            defined |= _relations(session, table, log, state, micros, schema=schema)
        except InputError as error:  # a query of other tables is answered
            refused = refusal_of(log, f"{TOO_EARLY}{error.message}; {error.remedy}")
            defined |= dict.fromkeys(names_of(table), refused)
    others = loaded.keys() - defined.keys()
    return defined | {name: refusal_of(loaded[name], without_commits(name)) for name in others}


def _relations(
    session: duckdb.DuckDBPyConnection,
    table: Table,
    log: CatalogTable,
    state: CatalogTable,
    micros: int,
    *,
    schema: str,
) -> dict[str, str]:
    """Return by name the SELECT of the table's relations as of that commit time.

    `<t>_changes` and `<t>_history` have the events committed until then, `<t>_current` the rows.
    The state is of no such time: a query of `<t>` is refused.
    """
    whole = scan(log, NOW)
    _check(session, table, log, whole, micros)
    floor = ""
    if table.delivery == "firehose":
        floor = applied_at(state, NOW).floor
        floor = floor_as_of(session, table, f"({whole})", floor, _floor_since(state, floor), micros)
    changes, moment = relation(schema, table.changes), DUCKDB.instant(micros)
    lacking = refusal_of_lacking(table, log, state)
    refused = (
        f"{TOO_EARLY}{table.name} is not of that time; query {naming.current_name(table.name)}"
    )
    return {
        table.changes: committed_through(f"({whole})", moment),
        table.name: refusal_of(log, refused),
        naming.current_name(table.name): lacking
        or as_of_view(table, changes=changes, moment=moment, dialect=DUCKDB, floor=floor),
        naming.history_name(table.name): lacking
        or history_view(table, changes=changes, dialect=DUCKDB),
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


def floor_as_of(
    session: duckdb.DuckDBPyConnection,
    table: Table,
    changes: str,
    known: str,
    since: datetime | None,
    micros: int,
) -> str:
    """Return the floor at that time of a changelog without sweeps.

    `known` is the floor in the state's stamp, which the state has had at least since `since`.
    Raises InputError if a snapshot was being read then: rows that it had not reached yet may have
    been deleted before.
    """
    floors = [""]
    moment = _EPOCH + timedelta(microseconds=micros)
    for floor, first, last in session.execute(epoch_snapshots(changes, DUCKDB, known)).fetchall():
        is_read = floor[:EPOCH_DIGITS] <= known[:EPOCH_DIGITS]
        if floor == known and first == last:
            first = last = min((time for time in (last, since) if time), default=_EPOCH)
        if moment < first:
            continue
        if is_read and moment >= last:
            floors.append(min(floor, known))
            continue
        began, ended = (time.astimezone(UTC).isoformat() for time in (first, last))
        later = f"for --as-of {ended} or later, or " if is_read else ""
        raise InputError(
            f"a new snapshot of {table.name} was being read at that time, from {began} on",
            f"ask {later}for a time before {began}",
        )
    return max(floors)


def _floor_since(state: CatalogTable, floor: str) -> datetime | None:
    """Return the time of the state's oldest known commit in a row that has this floor."""
    oldest = None
    for snapshot in state.ancestors(state.current):
        if snapshot.stamp is not None:
            if state_stamp(snapshot.stamp).floor != floor:
                break
            oldest = snapshot.committed_at
    return oldest


def _midnight(day: date | None) -> datetime | None:
    return None if day is None else datetime(day.year, day.month, day.day, tzinfo=UTC)
