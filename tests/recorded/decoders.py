"""Records through the stream's two decoders, whose rows must be equal, and Firehose's."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import Mock, patch

import numpy as np

from cdclake import naming
from cdclake.debezium.changelog_rows import LogRows, Place, read_event
from cdclake.debezium.refusals import RefusedEvent
from cdclake.debezium.stream_rows import StreamRows
from cdclake.jobs.stream.block_decoder import BlockDecoder
from cdclake.jobs.stream.changelog_columns import ABSENT, MISFITS, REFUSAL
from cdclake.plan import Plan, Table

Kafka = tuple[bytes | None, bytes | None]  # key and value
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def slow_rows(records: Sequence[Kafka], table: Table, plan: Plan) -> list[dict[str, Any] | None]:
    """Each record's row with its findings; offsets are those in the list, the partition is 0."""
    rows = StreamRows(table, plan)
    found: list[dict[str, Any] | None] = []
    for offset, (key, value) in enumerate(records):
        row = rows.row(key, value, Place(0, offset))
        if row is None:
            found.append(None)
            continue
        findings = {REFUSAL: row.refusal, ABSENT: row.absent, MISFITS: row.misfits}
        found.append({**row.values, **findings})
    return found


def fast_rows(
    records: Sequence[Kafka], table: Table, plan: Plan
) -> tuple[list[dict[str, Any] | None], int]:
    """The same by the fast decoder, in one block, and how many it left to the slow one."""
    keys, values = [key for key, _ in records], [value for _, value in records]
    decoder = BlockDecoder(table, plan)
    with counting_slow_rows() as slow:
        rows = decoder.decode(values, keys, 0, np.arange(len(records)))
    found: list[dict[str, Any] | None] = [None] * len(records)
    for row in rows.to_pylist():
        at = row[naming.COMMITTED_AT]
        micros = None if at is None else (at - _EPOCH) // timedelta(microseconds=1)
        found[row[naming.OFFSET]] = {**row, naming.COMMITTED_AT: micros}
    return found, slow.call_count


def counting_slow_rows() -> AbstractContextManager[Mock]:
    """Count the calls of the slow decoder within the block."""
    row = StreamRows.row
    return patch.object(StreamRows, "row", autospec=True, side_effect=row)


def firehose_row(
    record: Kafka, offset: int, table: Table, plan: Plan
) -> dict[str, Any] | str | None:
    """The record's row in Firehose's changelog, or the reason why it has none."""
    try:
        event = read_event(record[1]) if record[1] else None
        if event is None:
            return None
        row = LogRows(table, plan).row(event, Place(0, offset), 0)
    except RefusedEvent as refused:
        return str(refused)
    return {name: value for name, value in row.items() if name != naming.INGESTED_AT}


def is_same(one: Any, other: Any) -> bool:
    """Whether two rows are equal, NaN to itself and 0.0 not to -0.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(one[k], other[k]) for k in one)
    if isinstance(one, float) and isinstance(other, float):
        if math.isnan(one) or math.isnan(other):
            return math.isnan(one) and math.isnan(other)
        return one == other and math.copysign(1, one) == math.copysign(1, other)
    return type(one) is type(other) and one == other


def as_stored(row: dict[str, Any] | None, table: Table) -> dict[str, Any] | None:
    """The row with its reals as the changelog stores them, in 32 bits."""
    if row is None:
        return None
    reals = {c.name for c in table.columns if c.column_type.log == "float"}
    return {
        name: float(np.float32(value)) if name in reals and value is not None else value
        for name, value in row.items()
    }
