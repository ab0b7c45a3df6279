"""Offsets that each table has reached on AWS, from the stream's progress or Firehose's changelogs.

Firehose's read position is unknown, because it chooses its consumer group itself. But each row of a
changelog contains the Kafka offset of its event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cdclake import naming
from cdclake.firehose.stream import DeliveryStream
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.reader.duck import Reader
from cdclake.plan import Plan

Offsets = Mapping[str, Mapping[int, int]]  # by partition


def delivered_offsets(
    reader: Reader, plan: Plan, begins: Callable[[Sequence[str]], Offsets]
) -> Callable[[Progress], Offsets]:
    """Return a function that finds, by table, the topic offsets that its changelog has reached.

    For a Firehose stream that is the newest event in any of its changelogs. Older events may still
    be in flight, and undeliverable ones are in no changelog. `begins` returns by topic the first
    offsets in Kafka: earlier events are not expected, as a changelog may have dropped them. Events
    of an earlier epoch do not count, since their topic may have been lost with its Kafka.
    """

    def arrived(progress: Progress) -> Offsets:
        found = dict(progress.offsets())
        if not plan.deliveries:
            return found
        kept = begins([stream.topic for stream in plan.deliveries])
        for stream in plan.deliveries:
            newest = dict(kept.get(stream.topic, {}))
            for partition, following in _in_logs(reader, plan, stream, progress.epoch):
                newest[partition] = max(following, newest.get(partition, 0))
            found |= dict.fromkeys(stream.tables, newest)
        return found

    return arrived


def _in_logs(
    reader: Reader, plan: Plan, stream: DeliveryStream, epoch: int
) -> list[tuple[int, int]]:
    """Return by partition the offset after the newest event in the stream's changelogs."""
    tables = [plan.table(name) for name in stream.tables]
    # In Kafka a tombstone without a row follows each delete.
    behind = f"{naming.OFFSET} + CASE {naming.OP} WHEN 'd' THEN 2 ELSE 1 END"
    place = f"{naming.PARTITION}, {behind} AS following"
    rows = " UNION ALL ".join(
        f"SELECT {place} FROM {DUCKDB.name(table.changes)} WHERE {naming.EPOCH} >= {epoch}"
        for table in tables
    )
    with reader.open(tables) as session:
        return session.execute(
            f"SELECT {naming.PARTITION}, max(following) FROM ({rows})"
            " WHERE following IS NOT NULL GROUP BY ALL"
        ).fetchall()
