"""Fast decoder of blocks of Kafka records to changelog rows in Arrow.

It only takes events that it proves to give exactly the row of `StreamRows`; that one decodes all
others. So there is one meaning of an event, and this module is about speed alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdclake.debezium.changelog_rows import Place
from cdclake.debezium.position import SNAPSHOT_PHASE, STREAM_PHASE
from cdclake.debezium.stream_rows import StreamRow, StreamRows
from cdclake.jobs.stream.block_arrays import Flags, Numbers
from cdclake.jobs.stream.changelog_columns import ABSENT, MISFITS, REFUSAL, decoded_schema
from cdclake.jobs.stream.decoded_column import ColumnDecoder
from cdclake.jobs.stream.event_structs import EventStructs, can_be_structs, field_name
from cdclake.jobs.stream.parsed_events import ParsedEvents, parse_events
from cdclake.jobs.stream.position_texts import position_texts
from cdclake.jobs.stream.rule_proofs import RuleProofs
from cdclake.jobs.stream.source_sequences import read_sequences
from cdclake.plan import Plan, Table

_EPOCH = re.compile("[0-9]{1,8}", re.ASCII).fullmatch


class BlockDecoder:
    """Decoder of one table's records; it may be used for any number of blocks."""

    def __init__(self, table: Table, plan: Plan) -> None:
        self._slow = StreamRows(table, plan)
        self._structs = EventStructs(table) if can_be_structs(table) else None
        self._schema = decoded_schema(table)
        self._nothing = self._schema.empty_table()
        self._whole = table.replica_identity == "full"
        self._columns = [ColumnDecoder(column, table, plan) for column in table.columns]
        self._fields = [attrgetter(field_name(index)) for index in range(len(table.columns))]
        self._rules = RuleProofs(table)
        self._keys = [
            (attrgetter(field_name(index)), table.columns.index(column))
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
    ) -> pa.Table:
        """Decode records of one partition of the table's topic, in the order of their offsets.

        The result has the columns of `decoded_schema`, and refused events among its rows.
        """
        fast = np.zeros(len(values), bool)
        at, rows = np.zeros(0, np.int64), self._nothing
        parsed = parse_events(self._structs, values, keys) if self._structs is not None else None
        if parsed is not None and parsed.events:
            at = np.array(parsed.places, np.int64)
            proved, rows = self._proved_rows(parsed, partition, offsets[at])
            fast[at[proved]] = True
        again = [int(i) for i in np.flatnonzero(~fast) if values[i] is not None]
        if not again:
            return rows
        slow = [self._slow_row(values[i], keys[i], partition, int(offsets[i])) for i in again]
        return _replaced(rows, at, self._slow_table(slow), again)

    def _proved_rows(
        self, parsed: ParsedEvents, partition: int, offsets: Numbers
    ) -> tuple[Flags, pa.Table]:
        """Return the events' rows, and for each whether it is proved."""
        events, keys = parsed.events, parsed.keys
        facts = _Facts(events)
        images, proved = self._images(parsed, facts)
        proved &= facts.proved
        values = [list(map(of_row, images)) for of_row in self._fields]
        for of_key, place in self._keys:
            found = list(map(of_key, keys))
            if found != values[place]:
                same = (one == other for one, other in zip(found, values[place], strict=True))
                proved &= np.fromiter(same, bool, len(keys))
        columns, unsent = [], {}
        for column, found in zip(self._columns, values, strict=True):
            decoded = column.decode(found)
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

    def _images(self, parsed: ParsedEvents, facts: _Facts) -> tuple[list[Any], Flags]:
        """Return each event's row; an event without one is not proved."""
        is_whole, events, keys, structs = self._whole, parsed.events, parsed.keys, parsed.structs
        images: list[Any] = [event.after for event in events]
        unproved = []
        for index in facts.places_of("d"):
            images[index] = events[index].before if is_whole else structs.row_of_key(keys[index])
        if self._may_lose_values:
            unproved += [i for i in facts.places_of("u") if events[i].before is None]
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


def _replaced(rows: pa.Table, at: Numbers, slow: pa.Table, places: Sequence[int]) -> pa.Table:
    """Return the rows, which are `at` ascending places, with the slow ones at theirs instead.

    No row is copied: the result has a chunk for each stretch of rows of one kind.
    """
    begins = np.searchsorted(at, places).tolist()  # number of rows before each place
    ends = np.searchsorted(at, places, side="right").tolist()  # the same, with a row at the place
    chunks, start, taken = [], 0, 0
    for number, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        if begin > start:
            chunks += [slow.slice(taken, number - taken), rows.slice(start, begin - start)]
            taken = number
        start = end
    return pa.concat_tables([*chunks, slow.slice(taken), rows.slice(start)])


def _listed(unsent: dict[str, Flags], count: int) -> pa.Array:
    """Return for each event the names of the columns that were not sent; NULL for none."""
    kind = pa.list_(pa.string())
    if not unsent:
        return pa.nulls(count, kind)
    names = list(unsent)
    flags = np.stack([unsent[name] for name in names], axis=1)
    lists = [[names[i] for i in np.flatnonzero(row)] or None for row in flags]
    return pa.array(lists, kind)


class _Facts:
    """The columns about the events themselves."""

    def __init__(self, events: list[Any]) -> None:
        self._ops = pa.array([event.op for event in events], pa.string())
        self._sources = sources = [event.source for event in events]
        self._prev, lsn, self.proved = read_sequences([source.sequence for source in sources])
        sent = pa.array([source.lsn for source in sources], pa.int64())
        self._lsn = pc.coalesce(sent, pa.array(lsn)).to_numpy()
        self._epoch = self._epochs([event.epoch for event in events])

    def places_of(self, op: str) -> Numbers:
        """Return the places of the events with this operation."""
        places: Numbers = np.flatnonzero(self._is(op))
        return places

    def _is(self, op: str) -> Flags:
        flags: Flags = pc.equal(self._ops, op).to_numpy(zero_copy_only=False)
        return flags

    def _epochs(self, texts: list[str]) -> Numbers:
        numbers = {text: int(text) if _EPOCH(text) else -1 for text in set(texts)}
        if len(numbers) == 1:
            epochs = np.full(len(texts), next(iter(numbers.values())), np.int64)
        else:
            epochs = np.array([numbers[text] for text in texts], np.int64)
        self.proved = self.proved & (epochs >= 0)
        known: Numbers = np.maximum(epochs, 0)
        return known

    def columns(self, partition: int, offsets: Numbers, unavailable: pa.Array) -> list[pa.Array]:
        """Return the columns of `FACT_COLUMNS`, in their order."""
        count = len(self._ops)
        phase = np.where(self._is("r"), SNAPSHOT_PHASE, STREAM_PHASE).astype(np.int64)
        committed = pa.array([source.ts_us for source in self._sources], pa.int64())
        return [
            self._ops,
            position_texts(self._epoch, self._prev, phase, self._lsn, offsets),
            pa.array([source.txId for source in self._sources], pa.int64()),
            committed.cast(pa.timestamp("us", "UTC")),
            pa.array(np.full(count, partition, np.int32)),
            pa.array(offsets),
            unavailable,
            pa.array(self._epoch.astype(np.int32)),
            pa.array(self._lsn),
            pa.array(self._prev),
            pa.array(phase.astype(np.int32)),
        ]
