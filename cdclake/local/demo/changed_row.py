"""One row that the demo changed: its events in the changelog, and what lake and source show."""

from __future__ import annotations

from typing import Any, LiteralString

import duckdb
import psycopg
from psycopg.rows import dict_row

from cdclake import naming
from cdclake.local.lake.lake import LocalLake
from cdclake.local.reader.duck import lake_reader

TABLE, KEY = "orders", "order_id"
_COLUMNS: LiteralString = "status::text AS status, total::text AS total"
# The order whose status was changed last and that still exists. A status is never too large to be
# sent, so each event has it.
_CHANGED_LAST = f"""
WITH events AS (
    SELECT {KEY}, {naming.OP} AS op, status, {naming.POSITION} AS position,
        lag(status) OVER (PARTITION BY {KEY} ORDER BY {naming.POSITION}) AS before
    FROM {TABLE}_history
)
SELECT {KEY} FROM events SEMI JOIN {TABLE}_current USING ({KEY})
WHERE op = 'u' AND status <> before
ORDER BY position DESC LIMIT 1
"""
_EVENTS = f"""
SELECT {naming.OP} AS op, {_COLUMNS}, epoch_us({naming.COMMITTED_AT}) AS committed_us
FROM {TABLE}_history WHERE {KEY} = ? ORDER BY {naming.POSITION}
"""
_IN_THE_LAKE = f"SELECT {_COLUMNS} FROM {TABLE}_current WHERE {KEY} = ?"
_IN_THE_SOURCE: LiteralString = f"SELECT {_COLUMNS} FROM orders WHERE order_id = %s"

Shown = dict[str, Any]


def changed_row(lake: LocalLake) -> Shown | None:
    """Return the newest changed order: events, and the row in lake and source; None without one."""
    with lake_reader(lake).open(lake.plan.tables) as session:
        found = in_the_lake(session)
    if found is None:
        return None
    with psycopg.connect(lake.dsn, row_factory=dict_row) as source:
        row = source.execute(_IN_THE_SOURCE, (found["key"][KEY],)).fetchone()
    return {**found, "source": row}


def in_the_lake(session: duckdb.DuckDBPyConnection) -> Shown | None:
    """Return the key, the events by position, and the row in the lake."""
    changed = session.execute(_CHANGED_LAST).fetchone()
    if changed is None:
        return None
    events = [
        {**event, "op": naming.OPERATIONS[event["op"]]}
        for event in _rows(session.execute(_EVENTS, changed))
    ]
    [row] = _rows(session.execute(_IN_THE_LAKE, changed))
    return {"table": TABLE, "key": {KEY: changed[0]}, "events": events, "lake": row}


def _rows(answer: duckdb.DuckDBPyConnection) -> list[Shown]:
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
