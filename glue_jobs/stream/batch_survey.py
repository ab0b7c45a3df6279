"""Survey of a micro-batch before its tables are processed: ranges, heartbeats and size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.iceberg.dialect import SPARK
from cdclake.jobs.stream.batch_slices import SIZE
from cdclake.jobs.stream.table_batch import Ranges
from cdclake.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSurvey:
    """Facts of one micro-batch; epochs and times are 0 without a heartbeat."""

    ranges: Mapping[str, Ranges]  # offsets by topic
    epoch: int  # newest of the heartbeats
    has_read_heartbeat: bool  # one is a row of a snapshot
    heartbeat_committed_us: int  # commit time of the newest heartbeat, in microseconds
    size: int  # bytes of all records

    @property
    def events(self) -> int:
        """Number of offsets in the ranges."""
        return sum(
            following - first
            for topic in self.ranges.values()
            for first, following in topic.values()
        )

    def arriving(self, plan: Plan) -> frozenset[str]:
        """Return the tables with events in the batch."""
        return frozenset(table.name for table in plan.tables if table.topic in self.ranges)


def survey(events: DataFrame, plan: Plan) -> BatchSurvey:
    """Read the facts of a batch in one query."""
    is_beat = f"topic = {SPARK.text(plan.heartbeat_rows_topic)}"
    value = "CAST(value AS string)"
    epoch = f"CAST(get_json_object({value}, '$.{naming.EPOCH}') AS int)"
    committed = f"CAST(get_json_object({value}, '$.source.ts_us') AS bigint)"
    is_read = f"{is_beat} AND get_json_object({value}, '$.op') = 'r'"
    rows = (
        events.groupBy("topic", "partition")
        .agg(
            F.expr("min(offset) AS first"),
            F.expr("max(offset) + 1 AS following"),
            F.expr(f"max(IF({is_beat}, {epoch}, NULL)) AS epoch"),
            F.expr(f"max(IF({is_beat}, {committed}, NULL)) AS beat_us"),
            F.expr(f"count_if({is_read}) AS read_beats"),
            F.expr(f"{SIZE} AS size"),
        )
        .collect()
    )
    ranges: dict[str, dict[int, tuple[int, int]]] = {}
    for row in rows:
        ranges.setdefault(row["topic"], {})[row["partition"]] = (row["first"], row["following"])

    def newest(name: str) -> int:
        return max((row[name] or 0 for row in rows), default=0)

    return BatchSurvey(
        ranges=dict(ranges),
        epoch=newest("epoch"),
        has_read_heartbeat=newest("read_beats") > 0,
        heartbeat_committed_us=newest("beat_us"),
        size=sum(row["size"] for row in rows),
    )
