"""Decoder from Debezium events to rows of `<t>_changes`, one at a time without Spark, for Firehose.

It is a pure function of the event, its place in Kafka and the table's declaration. Firehose passes
neither key nor headers: the key is in the row, or for a delete in `before`, which contains it under
every replica identity. With an identity other than full, the rest of `before` is filler and is
never read. Every row equals the one that the stream writes (`cdclake.jobs.stream.decode`), except
for `cdc_ingested_at`; events that the stream can only decode with the help of others are refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.debezium.field_values import Digits, optional_bigint
from cdclake.debezium.position import SNAPSHOT_PHASE, STREAM_PHASE, position_text
from cdclake.debezium.refusals import RefusedEvent
from cdclake.debezium.row_field import RowField
from cdclake.debezium.row_rules import RowRules
from cdclake.debezium.toast_placeholder import refuses_unsent
from cdclake.plan import Plan, Table

Event = Mapping[str, Any]
_PUNCTUATION = str.maketrans("", "", '[]" ')
_MAX_EPOCH, _MAX_LSN = 1 << 31, 1 << 63
_DIGITS = frozenset("0123456789")
_decode = json.JSONDecoder(parse_float=Digits, parse_constant=Digits).decode


class Place(NamedTuple):
    """Place of the event in Kafka; None if it is no longer known.

    The offset only orders copies of one event: no two events of a key share the part of the
    position in front of it.
    """

    partition: int | None
    offset: int | None


def parse_json(value: bytes) -> Any:
    """Parse JSON with its numbers' digits; raise RefusedEvent if it is none.

    Of several fields of one name the last one counts; Debezium's converter cannot write that.
    """
    try:
        return _decode(value.decode())
    except (ValueError, RecursionError):
        raise RefusedEvent(refusals.UNREADABLE_VALUE) from None


def unwrapped(found: Any) -> Any:
    """Return a JSON value without the schema that a converter may have wrapped it with.

    A key of columns with these two names has no object in them.
    """
    is_wrapped = type(found) is dict and found.keys() == {"schema", "payload"}
    if is_wrapped and all(part is None or type(part) is dict for part in found.values()):
        return found["payload"]
    return found


def read_event(value: bytes) -> Event | None:
    """Parse the event in a record's value; None for tombstones and Debezium's heartbeats.

    An event that the converter wrapped with its schema is unwrapped. Raises RefusedEvent if the
    value is not a JSON object.
    """
    event = unwrapped(parse_json(value))
    if event is None:
        return None
    if type(event) is not dict:
        raise RefusedEvent(refusals.UNREADABLE_VALUE)
    is_heartbeat = "ts_ms" in event and not event.keys() - {"ts_ms", naming.EPOCH}
    return None if is_heartbeat else event


def source_of(event: Event) -> tuple[Any, Any]:
    """Return schema and table, in the source's spelling."""
    source = _part(event, "source")
    return source.get("schema"), source.get("table")


class LogRows:
    """Decoder of one table's changelog rows."""

    def __init__(self, table: Table, plan: Plan) -> None:
        self.table = table
        self._whole = table.replica_identity == "full"
        self._fields = [RowField.of(column, table, plan) for column in table.columns]
        self._keys = [field for field in self._fields if field.is_key]
        self._deleted = self._keys
        if self._whole:  # with hard deletes only the changelog has a deleted row's last values
            forgotten = table.deletes == "hard"
            self._deleted = [
                field._replace(holds=None) if forgotten and not field.is_key else field
                for field in self._fields
            ]
        self._rules = RowRules(table)
        self._nothing: Mapping[str, Any] = dict.fromkeys(c.name for c in table.columns)

    def row(self, event: Event, place: Place, ingested_at: int) -> dict[str, Any]:
        """Return all columns of the changelog by name; times are microseconds since 1970.

        Raises RefusedEvent if the event cannot be decoded, or if a rule withholds it.
        """
        _refuse_marker(event)
        op = event.get("op")
        if op not in ("c", "u", "r", "d", "t"):
            raise RefusedEvent(refusals.UNKNOWN_OPERATION)
        row = {**self._nothing, **_facts(event, op, place)}
        unsent = self._read(event, op, row)
        if op in ("c", "u", "r") and (reason := self._rules.reason(row, unsent)) is not None:
            raise RefusedEvent(reason)
        row[naming.UNAVAILABLE] = unsent or None
        row[naming.INGESTED_AT] = ingested_at
        return row

    def _read(self, event: Event, op: str, row: dict[str, Any]) -> list[str]:
        """Fill in the columns' values; return the names of those that were not sent."""
        if op == "t":
            return []
        image = event.get("before" if op == "d" else "after")
        if type(image) is not dict:
            raise RefusedEvent(refusals.NULL_KEY if op == "d" else refusals.NO_ROW)
        for field in self._keys:
            if image.get(field.column.source) is None:
                raise RefusedEvent(refusals.NULL_KEY)
        fields = self._deleted if op == "d" else self._fields
        # Under replica identity full the event of an update has the old row as well.
        lacks_old_row = self._whole and op == "u" and event.get("before") is None
        return _read_fields(fields, image, row, self.table, lacks_old_row)


def _refuse_marker(event: Event) -> None:
    """Refuse what the connector has marked, with its reason."""
    for name in (naming.OVERSIZED, naming.REFUSED):
        facts = event.get(name)
        if type(facts) is dict and type(facts.get("reason")) is str:
            raise RefusedEvent(facts["reason"])


def _read_fields(
    fields: Sequence[RowField],
    image: Mapping[str, Any],
    row: dict[str, Any],
    table: Table,
    lacks_old_row: bool,
) -> list[str]:
    unavailable = []
    for column, name, source, _, read, unsent, held, is_lost in fields:  # unpacked for speed
        try:
            value = image[source]
        except KeyError:
            if not column.renamed_from:
                raise RefusedEvent(refusals.absent_column(column)) from None
            found = [image[earlier] for earlier in column.names if earlier in image]
            value = next((earlier for earlier in found if earlier is not None), None)
            if not found:
                unavailable.append(name)
        if value is None:
            if is_lost and lacks_old_row:  # its type has no placeholder
                raise RefusedEvent(refusals.unsent_value(column))
            continue
        value = read(value)
        if value in unsent:
            if refuses_unsent(table):
                raise RefusedEvent(refusals.unsent_value(column))
            unavailable.append(name)
            continue
        if held is not None and not held(value):
            raise RefusedEvent(refusals.not_representable(column, table))
        row[name] = value
    return unavailable


def _facts(event: Event, op: str, place: Place) -> dict[str, Any]:
    """Return the columns about the event itself, except the list of unsent values."""
    source = _part(event, "source")
    epoch, prev, phase, lsn = _history(event, source)
    return {
        naming.OP: op,
        naming.POSITION: position_text(epoch, prev, phase, lsn, place.offset or 0),
        naming.TX_ID: optional_bigint(source, "txId"),
        naming.COMMITTED_AT: optional_bigint(source, "ts_us"),
        naming.PARTITION: place.partition,
        naming.OFFSET: place.offset,
        naming.EPOCH: epoch,
        naming.LSN: lsn,
        naming.PREV_COMMIT_LSN: prev,
        naming.PHASE: phase,
    }


def position_of(event: Event, place: Place) -> str:
    """Return the position of an event that may not be decodable; raise RefusedEvent without one."""
    return position_text(*_history(event, _part(event, "source")), place.offset or 0)


def _history(event: Event, source: Mapping[str, Any]) -> tuple[int, int, int, int]:
    """Return epoch, LSN of the previous commit, phase and LSN: the position without the offset."""
    prev, lsn = sequence_of(source)
    return epoch_of(event), prev, SNAPSHOT_PHASE if event.get("op") == "r" else STREAM_PHASE, lsn


def sequence_of(source: Mapping[str, Any]) -> tuple[int, int]:
    """Return the LSN of the previous commit (0 for none) and that of the event.

    Rows of an incremental snapshot have their LSN only in the sequence.
    """
    text, lsn = source.get("sequence"), optional_bigint(source, "lsn")
    if type(text) is not str:
        raise RefusedEvent(refusals.NO_SEQUENCE)
    prev, _, last = text.translate(_PUNCTUATION).partition(",")
    found = 0 if prev == "null" else _digits(prev), _digits(last) if lsn is None else lsn
    if min(found) < 0 or max(found) >= _MAX_LSN:
        raise RefusedEvent(refusals.NO_SEQUENCE)
    return found


def _digits(text: str) -> int:
    """Return the number that the digits write; -1 if they are none, or too many."""
    return int(text) if 0 < len(text) < 20 and _DIGITS.issuperset(text) else -1


def epoch_of(event: Event) -> int:
    """Return the epoch that the connector has set; raise RefusedEvent without one."""
    value = event.get(naming.EPOCH)
    epoch = _digits(str(value)) if type(value) in (str, int) else -1
    if 0 <= epoch < _MAX_EPOCH:
        return epoch
    raise RefusedEvent(refusals.NO_EPOCH)


def _part(event: Event, name: str) -> Mapping[str, Any]:
    part = event.get(name)
    if type(part) is not dict:
        raise RefusedEvent(refusals.UNREADABLE_VALUE)
    return part
