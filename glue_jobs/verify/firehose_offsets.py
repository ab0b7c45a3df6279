"""How far each table has come on AWS: by the stream's progress, or by what is in Firehose's logs.

Nobody is told how far Firehose has read: it names its consumer group itself. But each row says
where Kafka has its event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cdclake import naming
from cdclake.firehose.stream import DeliveryStream
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.reader.duck import Reader
from cdclake.plan import Plan

Offsets = Mapping[str, Mapping[int, int]]  # of the partitions


def delivered_offsets(
    reader: Reader, plan: Plan, begins: Callable[[Sequence[str]], Offsets]
) -> Callable[[Progress], Offsets]:
    """What finds by lake name behind which offsets a table's log has had its topic's events.

    Of a stream of Firehose that is the newest event in any of its logs; older ones may still be on
    their way, and what could not be delivered is in none. `begins` tells by topic what Kafka keeps
    from where: nobody waits for what is gone, of which a log may have dropped the rows.
    """

    def arrived(progress: Progress) -> Offsets:
        found = dict(progress.offsets())
        if not plan.deliveries:
            return found
        kept = begins([stream.topic for stream in plan.deliveries])
        for stream in plan.deliveries:
            newest = dict(kept.get(stream.topic, {}))
            for partition, following in _in_logs(reader, plan, stream):
                newest[partition] = max(following, newest.get(partition, 0))
            found |= dict.fromkeys(stream.tables, newest)
        return found

    return arrived


def _in_logs(reader: Reader, plan: Plan, stream: DeliveryStream) -> list[tuple[int, int]]:
    """By partition the offset after the newest event of the stream's logs."""
    tables = [plan.table(name) for name in stream.tables]
    # Behind a delete Kafka has a record without a value, of which there is no row.
    behind = f"{naming.OFFSET} + CASE {naming.OP} WHEN 'd' THEN 2 ELSE 1 END"
    place = f"{naming.PARTITION}, {behind} AS following"
    rows = " UNION ALL ".join(
        f"SELECT {place} FROM {DUCKDB.name(table.changes)}" for table in tables
    )
    with reader.open(tables) as session:
        return session.execute(
            f"SELECT {naming.PARTITION}, max(following) FROM ({rows})"
            " WHERE following IS NOT NULL GROUP BY ALL"
        ).fetchall()
