"""What the lake holds of the histories: a key's events in `<t>_history`, its row in `<t>`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from cdclake.debezium.position import Position
from tests.model_lake.audit import Place, Values
from tests.model_lake.shapes import ALL_SHAPES, VALUES, Shape

_DIGESTS = "v::VARCHAR, note, md5(body), md5(doc), md5(lower(hex(raw)))"


@dataclass(frozen=True, slots=True)
class Event:
    """One event of the log."""

    op: str
    position: str
    partition: int  # of Kafka; below 0: the stream's own
    values: Values
    unavailable: frozenset[str]
    committed_at: int  # microseconds since 1970

    @property
    def identity(self) -> tuple[Any, ...]:
        """What a second copy of the event has in common with it, but for table and key."""
        at = Position.parse(self.position)
        return (at.epoch, at.phase, at.lsn, self.op)

    @property
    def is_read(self) -> bool:
        """Whether a snapshot read it, so that no change stands behind it."""
        return self.op == "r"


@dataclass(frozen=True, slots=True)
class StateRow:
    """One row of `<t>`, tombstones too."""

    op: str
    position: str
    deleted: bool
    values: Values
    missing: tuple[str, ...]


def events_query() -> str:
    """Every event of every log, in the order of positions."""
    facts = f"cdc_op, cdc_position, cdc_partition, {_DIGESTS}, cdc_unavailable"
    facts += ", epoch_us(cdc_committed_at)"
    parts = [f"SELECT {_place(s)}, {facts} FROM {s.name}_history" for s in ALL_SHAPES]
    return " UNION ALL ".join(parts) + " ORDER BY cdc_position"


def state_query() -> str:
    """Every row of every state."""
    facts = f"cdc_op, cdc_position, cdc_deleted, {_DIGESTS}, cdc_toast_missing"
    return " UNION ALL ".join(f"SELECT {_place(s)}, {facts} FROM {s.name}" for s in ALL_SHAPES)


def earlier_query() -> str:
    """Return the query of every live row, for `sql --as-of`."""
    return " UNION ALL ".join(
        f"SELECT {_place(s)}, {_DIGESTS} FROM {s.name}_current" for s in ALL_SHAPES
    )


def _place(shape: Shape) -> str:
    """A truncate has no key."""
    parts = " || '/' || ".join(f"{name}::VARCHAR" for name in shape.key_columns)
    return f"'{shape.name}' AS name, {parts} AS key"


def events_by_key(rows: Iterable[list[Any]]) -> dict[Place, list[Event]]:
    """The answer to `events_query` by key; a table's truncates stand among each key's events."""
    listed = list(rows)
    keys = {(table, key) for table, key, *_ in listed if key is not None}
    events: dict[Place, list[Event]] = {place: [] for place in keys}
    for table, key, op, position, partition, *values, unavailable, committed_at in listed:
        missing = frozenset(unavailable or ())
        event = Event(op, position, partition, tuple(values), missing, committed_at)
        places = [(table, key)] if key is not None else [p for p in keys if p[0] == table]
        for place in places:
            events[place].append(event)
    return events


def rows_by_key(rows: Iterable[list[Any]]) -> dict[Place, list[StateRow]]:
    """The answer to `state_query` by key: one row each, if the state is right."""
    found: dict[Place, list[StateRow]] = {}
    for table, key, op, position, deleted, *values, missing in rows:
        row = StateRow(op, position, deleted, tuple(values), tuple(missing or ()))
        found.setdefault((table, key), []).append(row)
    return found


NOTHING: Values = (None,) * len(VALUES)
