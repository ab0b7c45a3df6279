"""Offsets that each table has reached on AWS, from the stream's progress or Firehose's changelogs.

Firehose's read position is unknown, because it chooses its consumer group itself. But each row of a
changelog contains the Kafka offset of its event, and the records after the newest one are in Kafka.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

from cdclake import naming
from cdclake.firehose.arrival import DELIVERY_S, NEXT_OFFSET, in_topic_since
from cdclake.firehose.erased_rows import ReadErased
from cdclake.firehose.stream import DeliveryStream
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.verify.settled_records import SettledRecords
from cdclake.jobs.verify.topic_records import Offsets, Ranges, ReadRecord
from cdclake.plan import Plan, Table

MAX_LOOK_S = 10.0  # the wait looks at its deadline only between two looks at the topics


class DeliveredTopics(Protocol):
    """Topics that Firehose reads."""

    def begins(self, topics: Collection[str]) -> Offsets:
        """Return the first offsets that Kafka still has."""
        ...

    def ends(self, topics: Collection[str]) -> Offsets:
        """Return the current end offsets."""
        ...

    def read(self, topic: str, ranges: Ranges) -> Sequence[ReadRecord]:
        """Return the records of these ranges, in the order of their offsets."""
        ...


def delivered_offsets(
    reader: Reader,
    plan: Plan,
    tables: Collection[Table],
    topics: DeliveredTopics,
    erased: ReadErased,
) -> Callable[[Progress], Offsets]:
    """Return a function that finds, by table, the topic offsets that its changelog has reached.

    Of the Firehose streams only those of `tables` are asked.

    For a Firehose stream that is the newest event in any of its changelogs, or the last record
    after it that is settled. Older events may still be in flight, and undeliverable ones are in no
    changelog. Events before the first offset in Kafka are not expected, as a changelog may have
    dropped them. `erased` returns the erased keys.
    """
    settled = SettledRecords(reader, plan, topics.read)
    chosen = {table.name for table in tables}
    streams = [stream for stream in plan.deliveries if chosen.intersection(stream.tables)]

    def arrived(progress: Progress) -> Offsets:
        found = dict(progress.offsets())
        if not streams:
            return found
        names = [stream.topic for stream in streams]
        kept, ends, gone = topics.begins(names), topics.ends(names), erased()
        until = time.monotonic() + MAX_LOOK_S
        for stream in streams:
            newest = dict(kept.get(stream.topic, {}))
            reached = _in_logs(reader, plan, stream, progress.first_epoch(stream.topic))
            for partition, offset in [*reached, *_overdue(progress, stream)]:
                newest[partition] = max(offset, newest.get(partition, 0))
            through = settled.after(stream.topic, newest, ends.get(stream.topic, {}), gone, until)
            found |= dict.fromkeys(stream.tables, through)
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
