"""Offsets that each table has reached on AWS, from the stream's progress or Firehose's changelogs.

Firehose's read position is unknown, because it chooses its consumer group itself. But each row of a
changelog contains the Kafka offset of its event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cdclake import naming
from cdclake.firehose.present_topic import in_present_topic, reached_offsets
from cdclake.firehose.stream import DeliveryStream
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.reader.duck import Reader
from cdclake.plan import Plan

Offsets = Mapping[str, Mapping[int, int]]  # by partition


def delivered_offsets(
    reader: Reader,
    plan: Plan,
    *,
    begins: Callable[[Sequence[str]], Offsets],
    ends: Callable[[Sequence[str]], Offsets],
) -> Callable[[Progress], Offsets]:
    """Return a function that finds, by table, the topic offsets that its changelog has reached.

    For a Firehose stream that is the newest event in any of its changelogs. Older events may still
    be in flight, and undeliverable ones are in no changelog. `begins` returns by topic the first
    offsets in Kafka: earlier events are not expected, as a changelog may have dropped them. `ends`
    returns the next offsets: an event of an earlier epoch beyond them is of a lost topic.
    """

    def arrived(progress: Progress) -> Offsets:
        found = dict(progress.offsets())
        if not plan.deliveries:
            return found
        topics = [stream.topic for stream in plan.deliveries]
        kept, following = begins(topics), ends(topics)
        for stream in plan.deliveries:
            newest = dict(kept.get(stream.topic, {}))
            logs = _in_logs(reader, plan, stream, progress.epoch)
            reached = in_present_topic(logs, following.get(stream.topic, {}))
            for partition, offset in reached.items():
                newest[partition] = max(offset, newest.get(partition, 0))
            found |= dict.fromkeys(stream.tables, newest)
        return found

    return arrived


def _in_logs(
    reader: Reader, plan: Plan, stream: DeliveryStream, epoch: int
) -> list[tuple[int, int | None, int | None]]:
    """Return by partition what the stream's changelogs have reached, since the epoch and before."""
    tables = [plan.table(name) for name in stream.tables]
    columns = ", ".join((naming.EPOCH, naming.PARTITION, naming.OFFSET, naming.OP))
    rows = " UNION ALL ".join(
        f"SELECT {columns} FROM {DUCKDB.name(table.changes)} WHERE {naming.OFFSET} IS NOT NULL"
        for table in tables
    )
    with reader.open(tables) as session:
        return session.execute(
            f"SELECT {naming.PARTITION}, {', '.join(reached_offsets(epoch))} FROM ({rows})"
            " GROUP BY ALL"
        ).fetchall()
