"""Fast decoder of blocks of Kafka records to changelog rows in Arrow.

It only takes events that it proves to give exactly the row of `StreamRows`; that one decodes all
others. So there is one meaning of an event, and this module is about speed alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cdclake import naming
from cdclake.debezium.changelog_rows import Place
from cdclake.debezium.position import SNAPSHOT_PHASE, STREAM_PHASE
from cdclake.debezium.stream_rows import StreamRow, StreamRows
from cdclake.jobs.stream.changelog_columns import ABSENT, MISFITS, REFUSAL, decoded_schema
from cdclake.jobs.stream.decoded_column import ColumnDecoder
from cdclake.jobs.stream.event_structs import EventStructs, can_be_structs, field_name
from cdclake.jobs.stream.position_texts import Numbers, position_texts
from cdclake.jobs.stream.rule_proofs import RuleProofs
from cdclake.plan import Plan, Table

_SEQUENCE = re.compile(r'\[(?:null|"([0-9]{1,18})"),"([0-9]{1,18})"\]').fullmatch
_EPOCH = re.compile("[0-9]{1,8}", re.ASCII).fullmatch

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class DecodedBlock:
    """Decoded events, refused ones among them, in the order of their offsets."""

    rows: pa.Table  # columns of `decoded_schema`
    slow: int  # number of events that the slow decoder has read


class BlockDecoder:
    """Decoder of one table's records; it may be used for any number of blocks."""

    def __init__(self, table: Table, plan: Plan) -> None:
        self._slow = StreamRows(table, plan)
        self._structs = EventStructs(table) if can_be_structs(table) else None
        self._schema = decoded_schema(table)
        self._whole = table.replica_identity == "full"
        self._columns = [ColumnDecoder(i, c, table, plan) for i, c in enumerate(table.columns)]
        self._rules = RuleProofs(table)
        self._keys = [
            (attrgetter(field_name(index)), attrgetter(field_name(table.columns.index(column))))
            for index, column in enumerate(table.key_columns)
        ]
        # Under replica identity full the event of an update has the old row, or values were lost.
        self._may_lose_values = self._whole and any(c.is_lost_when_unsent for c in self._columns)

    def decode(
        self,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None],
        partition: int,
        offsets: Numbers,
    ) -> DecodedBlock:
        """Decode records of one partition of the table's topic, in the order of their offsets."""
        fast = np.zeros(len(values), bool)
        rows: list[pa.Table] = []
        parsed = _parse(self._structs, values, keys) if self._structs is not None else None
        if parsed is not None and parsed.events:
            at = np.array(parsed.places, np.int64)
            proved, table = self._proved_rows(parsed, partition, offsets[at])
            fast[at[proved]] = True
            rows.append(table if proved.all() else table.filter(pa.array(proved)))
        again = [i for i in np.flatnonzero(~fast) if values[i] is not None]
        slow = [self._slow_row(values[i], keys[i], partition, int(offsets[i])) for i in again]
        if slow:
            rows.append(self._slow_table(slow))
        if not rows:
            return DecodedBlock(self._schema.empty_table(), 0)
        found = rows[0] if len(rows) == 1 else pa.concat_tables(rows).sort_by(naming.OFFSET)
        return DecodedBlock(found, len(slow))

    def _proved_rows(
        self, parsed: _Parsed, partition: int, offsets: Numbers
    ) -> tuple[Flags, pa.Table]:
        """Return the events' rows, and for each whether it is proved."""
        events, keys = parsed.events, parsed.keys
        facts = _Facts(events)
        images, proved = self._images(parsed)
        proved &= facts.proved
        for of_key, of_row in self._keys:
            if [of_key(key) for key in keys] != (found := [of_row(image) for image in images]):
                same = (of_key(k) == value for k, value in zip(keys, found, strict=True))
                proved &= np.fromiter(same, bool, len(keys))
        columns, unsent = [], {}
        for column in self._columns:
            decoded = column.decode(images)
            columns.append(decoded.values)
            if decoded.unproved is not None:
                proved &= ~decoded.unproved
            if decoded.unsent is not None:
                unsent[column.name] = decoded.unsent
        broken = self._rules.broken(columns, unsent, events)
        if broken is not None:
            proved &= ~broken
        columns += facts.columns(partition, offsets, _listed(unsent, len(events)))
        columns += [pa.nulls(len(events), self._schema.field(f).type) for f in _FINDINGS]
        return proved, pa.Table.from_arrays(columns, schema=self._schema)

    def _images(self, parsed: _Parsed) -> tuple[list[Any], Flags]:
        """Return each event's row; an event without one is not proved."""
        is_whole, events, keys, structs = self._whole, parsed.events, parsed.keys, parsed.structs
        images: list[Any] = [event.after for event in events]
        unproved = []
        for index, event in enumerate(events):
            if event.op == "d":
                images[index] = event.before if is_whole else structs.row_of_key(keys[index])
            elif self._may_lose_values and event.op == "u" and event.before is None:
                unproved.append(index)
            if not (event.oversized is event.refused is event.payload is msgspec.UNSET):
                unproved.append(index)
        if None in images:
            for index in [i for i, image in enumerate(images) if image is None]:
                images[index] = structs.row_of_key(keys[index])
                unproved.append(index)
        proved = np.ones(len(events), bool)
        proved[unproved] = False
        return images, proved

    def _slow_row(
        self, value: bytes | None, key: bytes | None, partition: int, offset: int
    ) -> StreamRow:
        row = self._slow.row(key, value, Place(partition, offset))
        assert row is not None  # tombstones are left out
        return row

    def _slow_table(self, slow: Sequence[StreamRow]) -> pa.Table:
        columns = []
        findings = {
            REFUSAL: [row.refusal for row in slow],
            ABSENT: [row.absent for row in slow],
            MISFITS: [row.misfits for row in slow],
        }
        for field in self._schema:
            values = findings.get(field.name) or [row.values[field.name] for row in slow]
            columns.append(pa.array(values, field.type))
        return pa.Table.from_arrays(columns, schema=self._schema)


_FINDINGS = (REFUSAL, ABSENT, MISFITS)


@dataclass(frozen=True, slots=True)
class _Parsed:
    """Records whose key and value are as declared, and their places in the block."""

    structs: EventStructs
    events: list[Any]
    keys: list[Any]
    places: Sequence[int]


def _parse(
    structs: EventStructs, values: Sequence[bytes | None], keys: Sequence[bytes | None]
) -> _Parsed:
    decode_value, decode_key = structs.decode_value, structs.decode_key
    try:  # nearly every block; a tombstone has no value, which raises TypeError
        _check_utf8(values)
        events = list(map(decode_value, values))  # type: ignore[arg-type]
        event_keys = list(map(decode_key, keys))  # type: ignore[arg-type]
        return _Parsed(structs, events, event_keys, range(len(values)))
    except (msgspec.MsgspecError, TypeError, UnicodeDecodeError):
        pass
    events, event_keys, places = [], [], []
    for place, (value, key) in enumerate(zip(values, keys, strict=True)):
        if value is None or key is None:
            continue
        try:
            _check_utf8([value])
            event, event_key = decode_value(value), decode_key(key)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
        events.append(event)
        event_keys.append(event_key)
        places.append(place)
    return _Parsed(structs, events, event_keys, places)


def _listed(unsent: dict[str, Flags], count: int) -> pa.Array:
    """Return for each event the names of the columns that were not sent; NULL for none."""
    kind = pa.list_(pa.string())
    if not unsent:
        return pa.nulls(count, kind)
    names = list(unsent)
    flags = np.stack([unsent[name] for name in names], axis=1)
    lists = [[names[i] for i in np.flatnonzero(row)] or None for row in flags]
    return pa.array(lists, kind)


def _check_utf8(values: Iterable[bytes | None]) -> None:
    """Raise UnicodeDecodeError if a value is not UTF-8; msgspec only checks what it reads."""
    for value in values:
        if value is not None and not value.isascii():
            value.decode()


class _Facts:
    """The columns about the events themselves."""

    def __init__(self, events: list[Any]) -> None:
        sources = [event.source for event in events]
        found = [_SEQUENCE(source.sequence) for source in sources]
        self.proved = np.fromiter((each is not None for each in found), bool, len(found))
        self._events, self._sources = events, sources
        self._prev = np.array([int(m[1] or 0) if m else 0 for m in found], np.int64)
        self._lsn = np.array(
            [
                source.lsn if source.lsn is not None else int(m[2]) if m else 0
                for source, m in zip(sources, found, strict=True)
            ],
            np.int64,
        )
        self._epoch = self._epochs()

    def _epochs(self) -> Numbers:
        texts = [event.epoch for event in self._events]
        numbers = {text: int(text) if _EPOCH(text) else -1 for text in set(texts)}
        epochs = np.array([numbers[text] for text in texts], np.int64)
        self.proved &= epochs >= 0
        return np.maximum(epochs, 0)

    def columns(self, partition: int, offsets: Numbers, unavailable: pa.Array) -> list[pa.Array]:
        """Return the columns of `FACT_COLUMNS`, in their order."""
        ops = [event.op for event in self._events]
        is_read = np.fromiter((op == "r" for op in ops), bool, len(ops))
        phase = np.where(is_read, SNAPSHOT_PHASE, STREAM_PHASE).astype(np.int64)
        committed = pa.array([source.ts_us for source in self._sources], pa.int64())
        return [
            pa.array(ops, pa.string()),
            position_texts(self._epoch, self._prev, phase, self._lsn, offsets),
            pa.array([source.txId for source in self._sources], pa.int64()),
            committed.cast(pa.timestamp("us", "UTC")),
            pa.array(np.full(len(ops), partition, np.int32)),
            pa.array(offsets),
            unavailable,
            pa.array(self._epoch.astype(np.int32)),
            pa.array(self._lsn),
            pa.array(self._prev),
            pa.array(phase.astype(np.int32)),
        ]
