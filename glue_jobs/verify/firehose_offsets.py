"""Offsets that each table has reached on AWS, from the stream's progress or Firehose's changelogs.

Firehose's read position is unknown, because it chooses its consumer group itself. But each row of a
changelog contains the Kafka offset of its event.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from cdclake import naming
from cdclake.firehose.arrival import DELIVERY_S, NEXT_OFFSET, in_topic_since
from cdclake.firehose.stream import DeliveryStream
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.reader.duck import Reader
from cdclake.plan import Plan

Offsets = Mapping[str, Mapping[int, int]]  # by partition


def delivered_offsets(
    reader: Reader,
    plan: Plan,
    begins: Callable[[Sequence[str]], Offsets],
) -> Callable[[Progress], Offsets]:
    """Return a function that finds, by table, the topic offsets that its changelog has reached.

    For a Firehose stream that is the newest event in any of its changelogs. Older events may still
    be in flight, and undeliverable ones are in no changelog. `begins` returns by topic the first
    offsets in Kafka: earlier events are not expected, as a changelog may have dropped them.
    """

    def arrived(progress: Progress) -> Offsets:
        found = dict(progress.offsets())
        if not plan.deliveries:
            return found
        kept = begins([stream.topic for stream in plan.deliveries])
        for stream in plan.deliveries:
            newest = dict(kept.get(stream.topic, {}))
            reached = _in_logs(reader, plan, stream, progress.first_epoch(stream.topic))
            for partition, offset in [*reached, *_overdue(progress, stream)]:
                newest[partition] = max(offset, newest.get(partition, 0))
            found |= dict.fromkeys(stream.tables, newest)
        return found

    return arrived


def _overdue(progress: Progress, stream: DeliveryStream) -> list[tuple[int, int]]:
    """Return by partition the end of the snapshot once Firehose no longer retries its records.

    A partition that only has rows of an earlier epoch reaches no end if its topic may have been
    lost. `apply_changes` waits as long.
    """
    if time.time() <= progress.completed_at + DELIVERY_S:
        return []
    return [end for name in stream.tables for end in progress.table(name).snapshot_ends.items()]


def _in_logs(
    reader: Reader, plan: Plan, stream: DeliveryStream, since: int
) -> list[tuple[int, int]]:
    """Return by partition the offset after the newest event in the stream's changelogs."""
    tables = [plan.table(name) for name in stream.tables]
    columns = ", ".join((naming.PARTITION, naming.OFFSET, naming.OP))
    rows = " UNION ALL ".join(
        f"SELECT {columns} FROM {DUCKDB.name(table.changes)} WHERE {in_topic_since(since)}"
        for table in tables
    )
    with reader.open(tables) as session:
        return session.execute(
            f"SELECT {naming.PARTITION}, {NEXT_OFFSET} FROM ({rows}) GROUP BY ALL"
        ).fetchall()
