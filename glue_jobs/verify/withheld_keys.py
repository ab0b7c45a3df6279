"""Keys that differ only because rules withhold their events (`on: quarantine`).

A key counts as withheld if the lake would show the source's row with the withheld events in its
changelog, and shows what the changelog gives without them. A key that differs for another reason
too stays a difference, and so does one whose events no current rule withholds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import duckdb

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.debezium.changelog_rows import Place, read_event
from cdclake.debezium.field_values import json_text
from cdclake.debezium.position import POLL_PHASE, Position
from cdclake.debezium.refusals import RefusedEvent
from cdclake.debezium.stream_rows import StreamRows
from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.key_changes import lacks_values
from cdclake.iceberg.key_values import key_values
from cdclake.iceberg.limit_condition import is_withheld
from cdclake.iceberg.rebuilt_view import rebuilt_view
from cdclake.iceberg.schemas import CHANGES_COLUMNS, SHARED_COLUMNS
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.reader.point_in_time import NOW
from cdclake.jobs.reader.relations import applied_at
from cdclake.jobs.stream.avro_values import AvroValues
from cdclake.jobs.stream.schema_registry import registry_of
from cdclake.jobs.verify import lake_rows
from cdclake.jobs.verify.first_pass import Sides
from cdclake.jobs.verify.mismatches import Digest, Mismatches
from cdclake.jobs.verify.rounds import Open
from cdclake.plan import Plan, Table
from cdclake.verify.compare import lake_digest
from cdclake.verify.statements import Comparable

_EVENTS, _ROWS = "cdclake_withheld_events", "cdclake_withheld_rows"
_BATCH_EVENTS = 2000
_IN_MEMORY = "temp.main."


def mark_withheld(compared: Open, reader: Reader) -> None:
    """Mark the differing keys whose difference the withheld events explain."""
    table, candidates = compared.sides.table, compared.candidates
    if not table.withholds:
        return
    floor = applied_at(reader.load([table], quarantine=False)[table.name], NOW).floor
    with reader.open([table], plain=[naming.QUARANTINE]) as lake:
        explain(candidates, lake, compared.sides, reader.plan, floor)


def explain(
    candidates: Mismatches,
    lake: duckdb.DuckDBPyConnection,
    sides: Sides,
    plan: Plan,
    floor: str,
) -> None:
    """Rebuild the differing keys without and with the withheld events, and mark what they explain.

    `floor` is the position of the newest truncate that the state has.
    """
    if not read_withheld(lake, sides.table, plan):
        return
    hashes = candidates.differing_hashes()
    candidates.look_at_accepted(rebuilt(lake, sides, plan, floor, hashes, withheld=False))
    candidates.mark_withheld(rebuilt(lake, sides, plan, floor, hashes, withheld=True))


def read_withheld(lake: duckdb.DuckDBPyConnection, table: Table, plan: Plan) -> int:
    """Create a temporary table of the withheld events; return their number."""
    _define_events(lake, table)
    found = 0
    for batch in _batches(lake, table, plan):
        _insert(lake, table, batch)
        found += len(batch)
    return found


def rebuilt(
    lake: duckdb.DuckDBPyConnection,
    sides: Sides,
    plan: Plan,
    floor: str,
    hashes: Iterable[int],
    *,
    withheld: bool,
) -> Iterator[Digest]:
    """Yield the rows with these hashes as the changelog gives them, with or without those events.

    Call `read_withheld` before.
    """
    changes = _changelog(sides.table, plan, withheld=withheld)
    rows = rebuilt_view(sides.table, changes=changes, floor=floor, dialect=DUCKDB)
    lake.execute(f"CREATE OR REPLACE TEMP VIEW {_ROWS} AS {rows}")
    side = Comparable("duckdb", f"{_IN_MEMORY}{_ROWS}", sides.source.columns)
    for row in lake_rows.rows_of(lake, side, hashes):
        yield row.hash, row.key, lake_digest(row, side.columns)


def _columns(table: Table) -> dict[str, str]:
    """Return the changelog's columns that an event has, with DuckDB's types."""
    facts = dict((*SHARED_COLUMNS, *CHANGES_COLUMNS))
    columns = {column.name: column.column_type.log for column in table.columns} | facts
    return {
        name: "VARCHAR[]" if kind == "array<string>" else kind
        for name, kind in columns.items()
        if kind != "timestamp"
    }


def _define_events(lake: duckdb.DuckDBPyConnection, table: Table) -> None:
    columns = ", ".join(f"{DUCKDB.name(name)} {kind}" for name, kind in _columns(table).items())
    lake.execute(f"CREATE TEMP TABLE {_EVENTS} ({columns})")


def _changelog(table: Table, plan: Plan, *, withheld: bool) -> str:
    """Return a SELECT of the changelog, with the withheld events or without them.

    Only the events of their keys matter, unless a changed key takes values from another one.
    """
    changes = f"{DUCKDB.name(plan.lake_database)}.{DUCKDB.name(table.changes)}"
    events = f"{_IN_MEMORY}{_EVENTS}"
    wanted = "true"
    if not table.may_stay_unsent:
        keys = ", ".join(key_values(table, DUCKDB))
        wanted = f"{naming.OP} = 't' OR ({keys}) IN (SELECT ({keys}) FROM {events})"
        # An event from before the replica identity was full may still lack a value.
        wanted += f" OR EXISTS (SELECT 1 FROM {changes} WHERE {lacks_values()})"
    accepted = f"SELECT * FROM {changes} WHERE {wanted}"
    return f"{accepted} UNION ALL BY NAME SELECT * FROM {events}" if withheld else accepted


def _batches(
    lake: duckdb.DuckDBPyConnection, table: Table, plan: Plan
) -> Iterator[list[Mapping[str, Any]]]:
    """Yield the events that the table's rules withhold as rows of its changelog."""
    rows = StreamRows(table, plan)
    avro = AvroValues(registry_of(plan)) if plan.format == "avro" else None
    records = lake.cursor()
    records.execute(f"SET search_path = {DUCKDB.text(plan.lake_database)}")
    records.execute(
        f'SELECT "key", "value", "partition", "offset" FROM {naming.QUARANTINE}'
        f' WHERE "table" = ? AND {is_withheld("reason")}',
        [table.name],
    )
    while found := records.fetchmany(_BATCH_EVENTS):
        values = [value for _, value, *_ in found]
        if avro is not None:
            values = avro.as_json(values)
        read = (
            _row(rows, key, value, Place(partition, offset))
            for (key, _, partition, offset), value in zip(found, values, strict=True)
        )
        yield [_placed(row, table) for row in read if row is not None]


def _row(
    rows: StreamRows, key: bytes | None, value: bytes, place: Place
) -> Mapping[str, Any] | None:
    """Decode a record; None if no current rule withholds it: a replay may bring it in."""
    try:
        decoded = rows.row(_key_of(value) if key is None else key, value, place)
    except RefusedEvent:
        return None
    if decoded is None or not refusals.is_withheld(decoded.refusal or ""):
        return None
    return decoded.values


def _key_of(value: bytes) -> bytes:
    """Return the row of an event as its key: Firehose passes no key, and the row contains it."""
    event = read_event(value) or {}
    return json_text(event.get("after")).encode()


def _placed(row: Mapping[str, Any], table: Table) -> Mapping[str, Any]:
    """Return the row at the position where its writer had put it."""
    if table.delivery != "poll":
        return row
    lsn = row[naming.LSN]
    at = Position(row[naming.EPOCH], lsn, POLL_PHASE, lsn, row[naming.OFFSET])
    return {**row, naming.POSITION: str(at)}


def _insert(
    lake: duckdb.DuckDBPyConnection, table: Table, rows: Sequence[Mapping[str, Any]]
) -> None:
    columns = _columns(table)
    lists = ", ".join(f"unnest(?::{kind}[])" for kind in columns.values())
    values = [[row[name] for row in rows] for name in columns]
    lake.execute(f"INSERT INTO {_IN_MEMORY}{_EVENTS} SELECT {lists}", values)
