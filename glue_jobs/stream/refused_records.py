"""Refused records in the quarantine's columns, made where they are decoded."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from cdclake import naming
from cdclake.jobs.stream.changelog_columns import REFUSAL
from cdclake.plan import Table

_AS_READ = ("topic", "partition", "offset", "key", "value", "headers")


def refused_records(records: pa.RecordBatch, events: pa.Table, table: Table) -> pa.Table:
    """Select the records whose `events` are refused, with their bytes and the reason.

    Both are in the same order.
    """
    refused = events.filter(pc.is_valid(events[REFUSAL]))
    chosen = pc.is_in(records["offset"], refused[naming.OFFSET].combine_chunks())
    rows = pa.Table.from_batches([records.filter(chosen)]).select(_AS_READ)
    now = pa.scalar(datetime.now(UTC), pa.timestamp("us", "UTC"))
    return (
        rows.append_column("reason", refused[REFUSAL])
        .append_column("table", pa.repeat(table.name, len(rows)))
        .append_column("quarantined_at", pa.repeat(now, len(rows)))
    )
