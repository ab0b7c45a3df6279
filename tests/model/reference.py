"""The reference: Kafka records to live rows, the simplest way that is right.

Read each record, put the events in their true order, replay them into a dict. It shares no code
with the engine's SQL; what both say of a scenario is compared.
"""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from cdclake.plan import Table
from tests.model.scenarios import Key, Live, Record

Order = tuple[int, int, int, int]  # epoch, previous commit LSN, phase, LSN
_PYTHON_TYPES = {"bigint": int, "int": int, "string": str, "boolean": bool}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One accepted event."""

    op: str
    key: Key
    order: Order
    tx: int | None
    partition: int
    offset: int
    values: dict[str, Any]
    missing: frozenset[str]

    @property
    def identity(self) -> tuple[Any, ...]:
        """What a second copy of the event has in common with it."""
        epoch, _, phase, lsn = self.order
        return (epoch, phase, lsn, self.op, self.key)

    @property
    def change(self) -> tuple[Any, ...]:
        """What both events of a changed key have in common."""
        return (self.order[0], self.tx, self.order[3])


@dataclass(slots=True)
class Row:
    """A key's row: which event made it, and each value with the event that it is from."""

    newest: Event
    deleted: bool
    values: dict[str, tuple[Any, Event | None]] = field(default_factory=dict)  # None: never seen


class Refused(Exception):
    """The event cannot be a row of the log; says why, in the quarantine's word."""


def read_all(
    records: Iterable[Record], table: Table, placeholder: str
) -> tuple[list[Event], list[str]]:
    """The events, and the reasons of those that were refused; tombstones are neither."""
    events, refused, seen = [], [], set()
    for record in records:
        if record.value is None or (record.partition, record.offset) in seen:
            continue
        seen.add((record.partition, record.offset))
        try:
            events.append(read(record, table, placeholder))
        except Refused as refusal:
            refused.append(str(refusal))
    return events, refused


def read(record: Record, table: Table, placeholder: str) -> Event:
    """The event of one record; Refused if it can't be one."""
    value = _json(record.value, "UNREADABLE_VALUE")
    op, source, after = value.get("op"), value.get("source") or {}, value.get("after")
    types = {c.source: _PYTHON_TYPES[c.column_type.log] for c in table.columns}
    if after and not all(_fits(after.get(name), kind) for name, kind in types.items()):
        raise Refused("UNREADABLE_VALUE")
    if op not in list("crudt"):
        raise Refused("UNKNOWN_OPERATION")
    if not source.get("sequence"):
        raise Refused("NO_SEQUENCE")
    if not value.get("cdc_epoch"):
        raise Refused("NO_EPOCH")
    key = () if op == "t" else _key(record, table, after if op in "cur" else None, op)
    prev, lsn = json.loads(source["sequence"])
    image = after if op in "cur" else None
    if op == "d" and table.replica_identity == "full":
        image = value.get("before")
    sent = image or {}
    values = {c.name: _as_text(sent.get(c.source)) for c in table.value_columns}
    missing = set()
    if op in "cu":
        missing = {name for name, held in values.items() if _stands_in(held, placeholder)}
    return Event(
        op=op,
        key=key,
        order=(int(value["cdc_epoch"]), int(prev or 0), 0 if op == "r" else 1, int(lsn)),
        tx=source.get("txId"),
        partition=record.partition,
        offset=record.offset or 0,
        values={name: None if name in missing else held for name, held in values.items()},
        missing=frozenset(missing),
    )


def _json(text: bytes | None, reason: str) -> dict[str, Any]:
    try:
        value = json.loads(text or b"")
    except ValueError:
        raise Refused(reason) from None
    if not isinstance(value, dict):
        raise Refused(reason)
    return value


def _fits(value: Any, kind: type) -> bool:
    return value is None or kind is str or type(value) is kind


def _as_text(value: Any) -> Any:
    """Lists and objects as the log has them: their JSON."""
    return json.dumps(value, separators=(",", ":")) if isinstance(value, list | dict) else value


def _key(record: Record, table: Table, after: dict[str, Any] | None, op: str) -> Key:
    sent = _json(record.key, "UNREADABLE_KEY")
    if op in "cur" and after is None:
        raise Refused("NO_ROW")
    key = tuple(sent.get(column.source) for column in table.key_columns)
    if None in key:
        raise Refused("NULL_KEY")
    if after is not None and key != tuple(after.get(c.source) for c in table.key_columns):
        raise Refused("KEY_MISMATCH")
    return key


def _stands_in(value: Any, placeholder: str) -> bool:
    """Whether a value only says that it was not sent, in any form that Debezium has for it."""
    raw = placeholder.encode()
    encoded = base64.b64encode(raw).decode()
    digest = hashlib.md5(raw, usedforsecurity=False).digest()
    forms: list[Any] = [placeholder, encoded, {placeholder: placeholder}]
    forms += [[placeholder], [encoded], list(raw), [str(uuid.UUID(bytes=digest, version=3))]]
    if value in forms:
        return True
    try:
        return isinstance(value, str) and json.loads(value) in forms[2:]
    except ValueError:
        return False


def once(events: Iterable[Event]) -> list[Event]:
    """Each event once: of copies the one that was read first, as the log keeps it."""
    kept: dict[tuple[Any, ...], Event] = {}
    for event in events:
        kept.setdefault(event.identity, event)
    return list(kept.values())


def in_order(events: Iterable[Event]) -> list[Event]:
    """By true order; where positions are equal, truncates first, then deletes."""
    return sorted(events, key=lambda e: (e.order, "tdcur".index(e.op), e.offset))


def replay(events: Iterable[Event], table: Table) -> dict[Key, Row]:
    """Every key's row, tombstones included, after all of these events."""
    ordered = in_order(once(events))
    leaving = {e.change: e.key for e in ordered if e.op == "d"}
    left: dict[tuple[Any, ...], Row | None] = {}  # the row that a key change took away
    rows: dict[Key, Row] = {}
    epoch = 0
    for event in ordered:
        if event.op == "t" or event.order[0] > epoch:
            rows = _truncated(rows, table)
        epoch = event.order[0]
        if event.op == "t":
            continue
        old = rows.get(event.key)
        if event.op == "d":
            left.setdefault(event.change, old)
        if event.op == "c" and event.missing:
            before_it = rows.get(leaving.get(event.change, ()))  # if the delete comes later
            old = left.get(event.change, before_it)
        rows[event.key] = _changed(old, event, table)
    return rows


def _truncated(rows: dict[Key, Row], table: Table) -> dict[Key, Row]:
    if table.deletes == "hard":
        return {}
    return {key: Row(row.newest, True, row.values) for key, row in rows.items()}


def _changed(old: Row | None, event: Event, table: Table) -> Row:
    keeps_all = event.op == "d" and table.deletes == "soft" and table.replica_identity != "full"
    values: dict[str, tuple[Any, Event | None]] = {}
    for name, value in event.values.items():
        if name in event.missing or keeps_all:
            held, origin = old.values[name] if old else (None, None)
            moved = event.op == "c" and origin is not None
            values[name] = (held, event if moved else origin)
        else:
            hidden = event.op == "d" and table.deletes == "hard"
            values[name] = (None if hidden else value, event)
    return Row(event, event.op == "d", values)


def live(rows: dict[Key, Row]) -> Live:
    """What a reader sees: key -> the other columns."""
    return {
        key: tuple(value for value, _ in row.values.values())
        for key, row in rows.items()
        if not row.deleted
    }


def missing(rows: dict[Key, Row]) -> dict[Key, list[str]]:
    """Of each live row the columns of which no value was ever seen, where there are any."""
    found = {
        key: [name for name, (_, origin) in row.values.items() if origin is None]
        for key, row in rows.items()
        if not row.deleted
    }
    return {key: names for key, names in found.items() if names}


def with_sweeps(events: Iterable[Event]) -> list[Event]:
    """The events once each, and the truncate that every epoch after the first begins with."""
    found = once(events)
    epochs = sorted({event.order[0] for event in found})
    swept = [
        Event(
            op="t", key=(), order=(epoch, 0, 0, 0), tx=None, partition=-1, offset=0,
            values={}, missing=frozenset(),
        )
        for epoch in epochs[1:]
    ]  # fmt: skip
    return found + swept


def logged(events: Iterable[Event]) -> str:
    """The log by position, in a scenario's notation."""
    ordered = in_order(with_sweeps(events))
    return " ".join(event.op + "/".join(map(str, event.key)) for event in ordered)
