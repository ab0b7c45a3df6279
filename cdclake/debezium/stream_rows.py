"""Decoder from Kafka records to rows of `<t>_changes`, one at a time, as the stream defines them.

This is the meaning of an event for the stream. Its faster decoder (`cdclake.jobs.stream`) takes
only events that it can prove to give exactly this row, and leaves the others to this one. Firehose
has its own (`changelog_rows`), since it sees no key and one event at a time. Here the key comes
from the record and is compared with the row; a field that is missing is reported and not refused,
since the stream compares it with earlier events; and numbers may be NaN or infinite.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any, NamedTuple

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.debezium.changelog_rows import Event, Place, epoch_of, sequence_of
from cdclake.debezium.event_parts import json_object
from cdclake.debezium.field_values import optional_bigint
from cdclake.debezium.position import SNAPSHOT_PHASE, STREAM_PHASE, position_text
from cdclake.debezium.refusals import RefusedEvent
from cdclake.debezium.row_field import RowField
from cdclake.debezium.row_rules import RowRules
from cdclake.debezium.toast_placeholder import refuses_unsent
from cdclake.plan import Plan, Table

_OPERATIONS = ("c", "u", "r", "d", "t")
_INTEGERS = frozenset({"smallint", "integer"})  # a single value may be too large for the column


class StreamRow(NamedTuple):
    """Row of a record; if it is refused, only its facts and its key are reliable, and may be None.

    The key is then that of the record. A row that a rule withholds is as reliable as one that is
    accepted.
    """

    values: dict[str, Any]  # the changelog's columns without `cdc_ingested_at`; times in us
    refusal: str | None  # why the record is refused
    absent: list[str] | None  # source names of declared columns without a field
    misfits: list[str] | None  # source names of fields that are not of the declared type


class StreamRows:
    """Decoder of one table's Kafka records."""

    def __init__(self, table: Table, plan: Plan) -> None:
        self._whole = table.replica_identity == "full"
        self._refuses_unsent = refuses_unsent(table)
        self._table = table
        self._fields = [
            RowField.of(column, table, plan, non_finite=True) for column in table.columns
        ]
        self._keys = [field for field in self._fields if field.is_key]
        # With hard deletes only the changelog has a deleted row's last values.
        self._forgets = table.deletes == "hard"
        self._rules = RowRules(table)
        self._nothing: Mapping[str, Any] = {
            **dict.fromkeys(column.name for column in table.columns),
            **dict.fromkeys(_FACTS),
        }

    def row(self, key: bytes | None, value: bytes | None, place: Place) -> StreamRow | None:
        """Return the record's row; None for a tombstone, which has none."""
        if value is None:
            return None
        row = {**self._nothing, naming.PARTITION: place.partition, naming.OFFSET: place.offset}
        image = _Image()
        try:
            event = json_object(value)
            if event is None:
                raise RefusedEvent(refusals.UNREADABLE_VALUE)
            refusal = self._read(event, key, row, image)
        except RefusedEvent as refused:
            refusal = str(refused)
        if refusal is not None and not refusals.is_withheld(refusal):
            known = None if refusal == refusals.KEY_MISMATCH else self._key_of(key)
            row.update(known or dict.fromkeys(field.name for field in self._keys))
        return StreamRow(row, refusal, image.absent or None, image.misfits or None)

    def _read(
        self, event: Event, key: bytes | None, row: dict[str, Any], image: _Image
    ) -> str | None:
        """Fill in the row; return the first reason to refuse it."""
        problem = _read_facts(event, row)
        op = row[naming.OP]
        after, before = _row(event, "after"), _row(event, "before") if self._whole else None
        fields = before if op == "d" else after
        if op in ("c", "u", "r", "d") and fields is not None:
            image.read(self._fields, fields)
        for name in (naming.OVERSIZED, naming.REFUSED):
            marker = _row(event, name)
            if marker is not None and isinstance(marker.get("reason"), str):
                return str(marker["reason"])
        if image.is_unreadable:
            return refusals.UNREADABLE_VALUE
        if problem is not None or op == "t":
            return problem
        keys = self._key_of(key)
        if op == "d" and keys is not None:
            image.values.update(keys)  # the only ones, unless the replica identity is full
        refusal = self._key_refusal(op, keys, after)
        lacks_old_row = self._whole and op == "u" and before is None
        refusal = refusal or self._value_refusal(op, image, lacks_old_row=lacks_old_row)
        if refusal is None and op != "d":  # a delete is never withheld
            refusal = self._rules.reason(image.values, image.unsent | image.unnamed)
        self._fill(row, image)
        return refusal

    def _key_of(self, key: bytes | None) -> Mapping[str, Any] | None:
        """Return the values of the record's key by column, None if it is unreadable."""
        try:
            fields = json_object(key)
            if fields is None:
                return None
            found = {field.name: fields.get(field.source) for field in self._keys}
            return {
                field.name: None if found[field.name] is None else field.read(found[field.name])
                for field in self._keys
            }
        except RefusedEvent:
            return None

    def _key_refusal(
        self, op: str, keys: Mapping[str, Any] | None, after: Mapping[str, Any] | None
    ) -> str | None:
        if keys is None:
            return refusals.UNREADABLE_KEY
        if op != "d" and after is None:
            return refusals.NO_ROW
        if None in keys.values():
            return refusals.NULL_KEY
        if op == "d" or after is None:
            return None
        values = {f.name: after.get(f.source) for f in self._keys}
        is_same = all(
            values[f.name] is not None and _are_equal(f.read(values[f.name]), keys[f.name])
            for f in self._keys
        )
        return None if is_same else refusals.KEY_MISMATCH

    def _value_refusal(self, op: str, image: _Image, *, lacks_old_row: bool) -> str | None:
        """Return the first reason among the values: those that were not sent come first."""
        for field in self._fields:
            is_unsent = self._refuses_unsent and field.name in image.unsent
            is_lost = field.is_lost_when_unsent and lacks_old_row
            if is_unsent or (is_lost and image.values.get(field.name) is None):
                return refusals.unsent_value(field.column)
        for field in self._fields:
            value = image.values.get(field.name)
            if value is None or field.holds is None or field.holds(value):
                continue
            if field.is_key or not (op == "d" and self._forgets):
                return refusals.not_representable(field.column, self._table)
        return None

    def _fill(self, row: dict[str, Any], image: _Image) -> None:
        row.update(image.values)
        listed = [f.name for f in self._fields if f.name in image.unsent | image.unnamed]
        row[naming.UNAVAILABLE] = listed or None


class _Image:
    """Values of a row's fields, and what is wrong with them."""

    __slots__ = ("absent", "is_unreadable", "misfits", "unnamed", "unsent", "values")

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.absent: list[str] = []
        self.misfits: list[str] = []
        self.unsent: set[str] = set()  # a placeholder was sent
        self.unnamed: set[str] = set()  # a renamed column that has a field under none of its names
        self.is_unreadable = False

    def read(self, fields: Sequence[RowField], image: Mapping[str, Any]) -> None:
        """Read all columns' fields."""
        for field in fields:
            if field.source not in image:
                self.absent.append(field.source)
                names = field.column.renamed_from
                if names and not any(name in image for name in names):
                    self.unnamed.add(field.name)
            self._read_one(field, _value_in(image, field))

    def _read_one(self, field: RowField, value: Any) -> None:
        if value is None:
            return
        try:
            read = field.read(value)
        except RefusedEvent:
            self.is_unreadable = True
            if not (field.column.column_type.base in _INTEGERS and type(value) is int):
                self.misfits.append(field.source)
            return
        if read in field.unsent:
            self.unsent.add(field.name)
        else:
            self.values[field.name] = read


def _value_in(image: Mapping[str, Any], field: RowField) -> Any:
    """Return the field under its current name or, without it, an earlier one."""
    if field.source in image:
        return image[field.source]
    earlier = (image.get(name) for name in field.column.names[1:])
    return next((value for value in earlier if value is not None), None)


def _are_equal(one: Any, other: Any) -> bool:
    """Compare as PostgreSQL does, where NaN equals itself."""
    both_nan = type(one) is type(other) is float and isnan(one) and isnan(other)
    return both_nan or bool(one == other)


def _row(event: Event, name: str) -> Mapping[str, Any] | None:
    """Return the event's row; raise RefusedEvent if it is neither an object nor null."""
    row = event.get(name)
    if row is not None and type(row) is not dict:
        raise RefusedEvent(refusals.UNREADABLE_VALUE)
    return row


_FACTS = (
    naming.OP, naming.POSITION, naming.TX_ID, naming.COMMITTED_AT, naming.PARTITION, naming.OFFSET,
    naming.UNAVAILABLE, naming.EPOCH, naming.LSN, naming.PREV_COMMIT_LSN, naming.PHASE,
)  # fmt: skip


def _read_facts(event: Event, row: dict[str, Any]) -> str | None:
    """Fill in the columns about the event itself; return the first reason to refuse it."""
    source = _row(event, "source") or {}
    op, phase = event.get("op"), SNAPSHOT_PHASE if event.get("op") == "r" else STREAM_PHASE
    row[naming.PHASE] = phase
    row[naming.OP] = op if type(op) is str else None
    row[naming.TX_ID] = optional_bigint(source, "txId")
    row[naming.COMMITTED_AT] = optional_bigint(source, "ts_us")
    problems = [] if op in _OPERATIONS else [refusals.UNKNOWN_OPERATION]
    try:
        row[naming.PREV_COMMIT_LSN], row[naming.LSN] = sequence_of(source)
    except RefusedEvent as refused:
        problems.append(str(refused))
    try:
        row[naming.EPOCH] = epoch_of(event)
    except RefusedEvent as refused:
        problems.append(str(refused))
    if row[naming.LSN] is not None and row[naming.EPOCH] is not None:
        row[naming.POSITION] = position_text(
            row[naming.EPOCH],
            row[naming.PREV_COMMIT_LSN],
            phase,
            row[naming.LSN],
            row[naming.OFFSET] or 0,
        )
    return problems[0] if problems else None
