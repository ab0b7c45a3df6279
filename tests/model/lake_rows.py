"""The reference's events and rows as rows of `<t>_changes` and `<t>`, for the views to read."""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

from cdclake import naming
from cdclake.debezium.position import Position, history_part
from cdclake.iceberg.views import AppliedThrough
from cdclake.plan import Table
from tests.model.reference import Event, Row
from tests.model.scenarios import Key


def position(event: Event) -> str:
    """The text that the lake has for the event's place in the order."""
    return str(Position(*event.order, event.offset))


def log_row(event: Event, table: Table, ingested: int) -> dict[str, Any]:
    """The event as the log holds it."""
    epoch, prev, phase, lsn = event.order
    return {
        **dict(zip(table.key, event.key, strict=False)),
        **event.values,
        **_facts(event),
        naming.EPOCH: epoch,
        naming.LSN: lsn,
        naming.PREV_COMMIT_LSN: prev,
        naming.PHASE: phase,
        naming.INGESTED_AT: ingested,
    }


def state_row(key: Key, row: Row, table: Table) -> dict[str, Any]:
    """The row as the state holds it."""
    origins = {name: origin for name, (_, origin) in row.values.items()}
    at = {
        name: position(origin) if origin else ""
        for name, origin in origins.items()
        if name in table.toastable and origin is not row.newest
    }
    lacking = [name for name, place in at.items() if not place]
    return {
        **dict(zip(table.key, key, strict=True)),
        **{name: _stored(name, value, table) for name, (value, _) in row.values.items()},
        **_facts(row.newest),
        naming.DELETED: row.deleted,
        naming.TOAST_MISSING: lacking or None,
        naming.VALUE_POSITIONS: at or None,
    }


def _stored(name: str, value: Any, table: Table) -> Any:
    is_bytes = any(c.name == name and c.column_type.state == "binary" for c in table.columns)
    return base64.b64decode(value) if is_bytes and value is not None else value


def applied(events: Iterable[Event], ingested: int) -> AppliedThrough:
    """What the state says it holds after these events."""
    held = list(events)
    floors = [history_part(position(event)) for event in held if event.op == "t"]
    return AppliedThrough(
        ingested,
        max(floors, default=""),
        tuple({name for event in held for name in event.missing}),
        max((position(event) for event in held), default=""),
    )


def _facts(event: Event) -> dict[str, Any]:
    return {
        naming.OP: event.op,
        naming.POSITION: position(event),
        naming.TX_ID: event.tx,
        naming.PARTITION: event.partition,
        naming.OFFSET: event.offset,
        naming.UNAVAILABLE: sorted(event.missing) or None,
    }
