"""What the stream's two decoders and Firehose's make of the same Kafka records."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cdclake import naming
from cdclake.debezium.changelog_rows import LogRows, Place, read_event
from cdclake.debezium.refusals import RefusedEvent
from cdclake.debezium.stream_rows import StreamRows
from cdclake.jobs.stream.block_decoder import BlockDecoder
from cdclake.jobs.stream.changelog_columns import ABSENT, MISFITS, REFUSAL
from cdclake.plan import Plan, Table
from tests.recorded.decoders import counting_slow_rows


class Sent(NamedTuple):
    """One Kafka record of a table's topic."""

    offset: int
    key: bytes | None
    value: bytes | None
    partition: int = 0


class Outcome(NamedTuple):
    """What became of a record; values compare as text, since NaN does not equal itself."""

    row: dict[str, str]
    refusal: str | None
    absent: list[str] | None
    misfits: list[str] | None


Outcomes = dict[tuple[int, int], Outcome]


def by_block(records: Sequence[Sent], table: Table, plan: Plan) -> tuple[Outcomes, int]:
    """What the block decoder makes of them, by place; and how many it decoded alone."""
    tables = []
    with counting_slow_rows() as slow:
        for partition in sorted({record.partition for record in records}):
            mine = [record for record in records if record.partition == partition]
            decoded = BlockDecoder(table, plan).decode(
                [record.value for record in mine],
                [record.key for record in mine],
                partition,
                np.array([record.offset for record in mine], np.int64),
            )
            tables.append(decoded)
    rows = pa.concat_tables(tables)
    at = rows.schema.names.index(naming.COMMITTED_AT)
    micros = rows.column(at).combine_chunks().view("int64")
    in_micros = rows.set_column(at, naming.COMMITTED_AT, micros).to_pylist()
    found = {}
    for row in in_micros:
        findings = [row.pop(name) for name in (REFUSAL, ABSENT, MISFITS)]
        found[_place(row)] = Outcome(_as_text(row, {}), *findings)
    return found, slow.call_count


def alone(records: Sequence[Sent], table: Table, plan: Plan) -> Outcomes:
    """What `StreamRows` makes of them, by place."""
    decoder, found = StreamRows(table, plan), {}
    for record in records:
        place = Place(record.partition, record.offset)
        streamed = decoder.row(record.key, record.value, place)
        if streamed is not None:
            row = _as_text(streamed.values, _reals(table))
            findings = (streamed.refusal, streamed.absent, streamed.misfits)
            found[(record.partition, record.offset)] = Outcome(row, *findings)
    return found


def by_firehose(record: Sent, table: Table, plan: Plan) -> dict[str, str] | str | None:
    """The row that Firehose's function makes of one, or why it refuses the event."""
    try:
        event = read_event(record.value) if record.value else None
        if event is None:
            return None
        row = LogRows(table, plan).row(event, Place(record.partition, record.offset), 0)
    except RefusedEvent as refused:
        return str(refused)
    row.pop(naming.INGESTED_AT)
    return _as_text(row, _reals(table))


def _place(row: dict[str, Any]) -> tuple[int, int]:
    return row[naming.PARTITION], row[naming.OFFSET]


def _reals(table: Table) -> dict[str, str]:
    return {c.name: "f" for c in table.columns if c.column_type.log == "float"}


def _as_text(row: dict[str, Any], packed: dict[str, str]) -> dict[str, str]:
    return {name: repr(_stored(value, packed.get(name))) for name, value in row.items()}


def _stored(value: Any, form: str | None) -> Any:
    """The value as a column of this type holds it."""
    if form is None or value is None:
        return value
    return struct.unpack(form, struct.pack(form, value))[0]
