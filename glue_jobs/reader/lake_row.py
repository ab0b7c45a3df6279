"""The row in the lake's tables: changelog, quarantine, state, and the view of live rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from cdclake import naming
from cdclake.debezium.position import history_part
from cdclake.debezium.refusals import without_value
from cdclake.iceberg.conversions import to_state
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp, state_stamp
from cdclake.jobs.reader.catalog import CatalogTable, TableSnapshot
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.reader.key_condition import in_changelog, in_state
from cdclake.jobs.reader.point_in_time import NOW
from cdclake.jobs.reader.relations import applied_at
from cdclake.plan import Column, Table
from cdclake.trace.row_key import RowKey
from cdclake.trace.trace_facts import MAX_EVENTS, Row, StateFacts, TracedEvent

_FACTS = (
    naming.OP, naming.POSITION, naming.TX_ID, naming.PARTITION, naming.OFFSET, naming.UNAVAILABLE,
    naming.EPOCH, naming.LSN,
)  # fmt: skip
_NEWEST = f"ORDER BY {naming.POSITION} DESC"
_FETCHED = 1000  # rows at once


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeRow:
    """Everything that the lake's tables have of a row."""

    events: tuple[TracedEvent, ...] = ()
    has_earlier: bool = False  # there are older events than the first of these
    truncates: tuple[TracedEvent, ...] = ()
    quarantined: tuple[TracedEvent, ...] = ()
    applied_through_us: int = 0
    state: StateFacts | None = None
    state_row: Row | None = None
    current_row: Row | None = None


def read_lake_row(reader: Reader, key: RowKey) -> LakeRow:
    """Read the row; nothing of it if the table's first batch has not created its tables."""
    table, names = key.table, reader.catalog.names()
    if not {table.name, table.changes} <= names:
        return LakeRow()
    refused = [naming.QUARANTINE] if naming.QUARANTINE in names else []
    loaded = reader.load([table], quarantine=False)
    commits = _Commits(loaded[table.changes], loaded[table.name], table)
    with reader.open([table], plain=refused) as session:
        state_row = _object(session, table.name, key, _NEWEST)
        stored = list(_stored(session, key, commits))
        return LakeRow(
            events=tuple(stored[-MAX_EVENTS:]),
            has_earlier=len(stored) > MAX_EVENTS,
            truncates=tuple(_truncates(session, table, commits, stored)),
            quarantined=tuple(_quarantined(session, key)) if refused else (),
            applied_through_us=commits.applied_through_us,
            state=None if state_row is None else _state(state_row),
            state_row=state_row,
            current_row=_object(session, naming.current_name(table.name), key),
        )


class _Commits:
    """Commit times of an event, from the retained snapshots of changelog and state."""

    def __init__(self, changes: CatalogTable, state: CatalogTable, table: Table) -> None:
        # Firehose commits files in any order, so the time of ingestion proves no commit.
        ordered = table.delivery != "firehose"
        self._changes = _bounds(changes, _ingested_through) if ordered else []
        self._state = _bounds(state, _applied_through) if ordered else []
        self.applied_through_us = applied_at(state, NOW).ingested

    def shown_ms(self, ingested_us: int) -> int | None:
        """Return when the changelog got an event; None if that snapshot has expired."""
        return _first(self._changes, ingested_us)

    def applied_ms(self, ingested_us: int) -> int | None:
        """Return when the state got an event; None if it has not, or the snapshot has expired."""
        return _first(self._state, ingested_us)


def _ingested_through(stamp: str) -> int:
    return ChangesStamp.from_json(stamp).ingested_through


def _applied_through(stamp: str) -> int:
    return state_stamp(stamp).ingested


def _bounds(table: CatalogTable, through: Callable[[str], int]) -> list[tuple[int, int, bool]]:
    """Return ingestion, commit time, and whether the commit before is known; oldest first."""
    stamped: list[TableSnapshot] = [s for s in table.ancestors(table.current) if s.stamp]
    return [
        (through(s.stamp or ""), s.committed_ms, index > 0 or s.parent is None)
        for index, s in enumerate(reversed(stamped))
    ]


def _first(bounds: Iterable[tuple[int, int, bool]], ingested_us: int) -> int | None:
    for through, committed_ms, is_exact in bounds:
        if through >= ingested_us:
            return committed_ms if is_exact else None
    return None


def _object(
    session: duckdb.DuckDBPyConnection, relation: str, key: RowKey, order: str = ""
) -> Row | None:
    """Return the row as JSON; its decimals are text, since DuckDB's JSON rounds them.

    A state may also have a deleted row with another spelling of the key.
    """
    texts = ", ".join(
        f"{DUCKDB.name(c.name)}::VARCHAR AS {DUCKDB.name(c.name)}"
        for c in key.table.columns
        if _is_decimal(c)
    )
    columns = f"* REPLACE ({texts})" if texts else "*"
    query = f"SELECT {columns} FROM {DUCKDB.name(relation)} WHERE {in_state([key])} {order}"
    found = session.execute(
        f"SELECT to_json(cdc__row)::VARCHAR FROM ({query}) AS cdc__row"
    ).fetchone()
    return None if found is None else _parsed(found[0])


def _is_decimal(column: Column) -> bool:
    return column.column_type.state.startswith("decimal")


def _parsed(text: str) -> Row:
    parsed: Row = json.loads(text, parse_float=str, parse_constant=str)
    return parsed


def _state(row: Row) -> StateFacts:
    missing = tuple(row[naming.TOAST_MISSING] or ())
    return StateFacts(position=row[naming.POSITION], deleted=row[naming.DELETED], missing=missing)


def _selected(where: str, table: Table) -> str:
    """Return the query of the newest events, one more than are traced, newest first."""
    values = ", ".join(
        f"{DUCKDB.name(c.name)} := {to_state(DUCKDB.name(c.name), c.column_type, DUCKDB)}"
        f"{'::VARCHAR' if _is_decimal(c) else ''}"
        for c in table.columns
    )
    facts = ", ".join(_FACTS)
    return (
        f"SELECT {facts}, epoch_us({naming.COMMITTED_AT}) AS committed,"
        f" epoch_us({naming.INGESTED_AT}) AS ingested,"
        f" to_json(struct_pack({values}))::VARCHAR AS row"
        f" FROM {DUCKDB.name(table.changes)} WHERE {where}"
        f" ORDER BY {naming.POSITION} DESC LIMIT {MAX_EVENTS + 1}"
    )


def _fetched(session: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, Any]]:
    result = session.execute(query)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in reversed(result.fetchall())]


def _stored(
    session: duckdb.DuckDBPyConnection, key: RowKey, commits: _Commits
) -> Iterator[TracedEvent]:
    rows = _fetched(session, _selected(in_changelog([key]), key.table))
    others = _other_keys(session, key, rows)
    for row in rows:
        pair = others.get((row[naming.EPOCH], row[naming.LSN], row[naming.TX_ID]))
        values = _parsed(row["row"])
        yield _event(row, key.table, commits, values=values, other_key=_other(row, pair))


def _other(row: Mapping[str, Any], pair: tuple[str, str] | None) -> str | None:
    """Return the other key of a changed key: a delete's is that of a creation, and vice versa."""
    if pair is None or {row[naming.OP], pair[0]} != {"c", "d"}:
        return None
    return pair[1]


def _truncates(
    session: duckdb.DuckDBPyConnection,
    table: Table,
    commits: _Commits,
    stored: Sequence[TracedEvent],
) -> Iterator[TracedEvent]:
    """Yield the truncates after the row's first event; files that end before it are not read."""
    if not stored:
        return
    first = DUCKDB.text(stored[0].position or "")
    where = f"{naming.OP} = 't' AND {naming.POSITION} > {first}"
    for row in _fetched(session, _selected(where, table)):
        yield _event(row, table, commits)


def _event(
    row: Mapping[str, Any],
    table: Table,
    commits: _Commits,
    *,
    values: Row | None = None,
    other_key: str | None = None,
) -> TracedEvent:
    return TracedEvent(
        op=row[naming.OP],
        position=row[naming.POSITION],
        tx_id=row[naming.TX_ID],
        committed_us=row["committed"],
        topic=table.topic,
        partition=row[naming.PARTITION],
        offset=row[naming.OFFSET],
        ingested_us=row["ingested"],
        shown_ms=commits.shown_ms(row["ingested"]),
        applied_ms=commits.applied_ms(row["ingested"]),
        values=values,
        unsent=tuple(row[naming.UNAVAILABLE] or ()),
        other_key=other_key,
    )


def _other_keys(
    session: duckdb.DuckDBPyConnection, key: RowKey, rows: Sequence[Mapping[str, Any]]
) -> dict[tuple[int, int, int], tuple[str, str]]:
    """Return operation and key of other keys' events that are halves of the same change.

    Both halves have one position up to the offset, so that files without it are not read.
    """
    halves = [r for r in rows if r[naming.OP] in ("c", "d") and r[naming.TX_ID] is not None]
    if not halves:
        return {}
    places = {(row[naming.EPOCH], row[naming.LSN], row[naming.TX_ID]) for row in halves}
    listed = ", ".join(map(str, sorted(places)))
    positions = sorted(history_part(row[naming.POSITION]) for row in halves)
    first, last = DUCKDB.text(positions[0]), DUCKDB.text(f"{positions[-1]}~")
    keys = ", ".join(
        f"{to_state(DUCKDB.name(c.name), c.column_type, DUCKDB)}::VARCHAR"
        for c in key.table.key_columns
    )
    query = (
        f"SELECT {naming.EPOCH}, {naming.LSN}, {naming.TX_ID}, {naming.OP},"
        f" concat_ws(' ', {keys}) FROM {DUCKDB.name(key.table.changes)}"
        f" WHERE {naming.POSITION} BETWEEN {first} AND {last}"
        f" AND ({naming.EPOCH}, {naming.LSN}, {naming.TX_ID}) IN ({listed})"
        f" AND NOT ({in_changelog([key])}) AND {naming.OP} IN ('c', 'd')"
    )
    return {
        (e, lsn, tx): (op, other) for e, lsn, tx, op, other in session.execute(query).fetchall()
    }


def _quarantined(session: duckdb.DuckDBPyConnection, key: RowKey) -> Iterator[TracedEvent]:
    """Yield the row's refused events; a value is read only if it has to name the row."""
    result = session.execute(
        'SELECT topic, "partition", "offset", "key", CASE WHEN "key" IS NULL THEN "value" END,'
        f' reason, epoch_us(quarantined_at) FROM {naming.QUARANTINE} WHERE "table" = ?'
        " ORDER BY quarantined_at",
        [key.table.name],
    )
    while rows := result.fetchmany(_FETCHED):
        for topic, partition, offset, key_bytes, value, reason, at in rows:
            if key.matches(key_bytes, value):
                yield TracedEvent(
                    topic=topic,
                    partition=partition,
                    offset=offset,
                    reason=without_value(reason),
                    quarantined_us=at,
                )
