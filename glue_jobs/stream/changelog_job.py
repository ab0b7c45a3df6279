"""One Spark job per micro-batch that decodes the records of all tables and writes their files.

The number of its tasks is that of the cores, never that of the tables: each task in Python
has a fixed cost.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Row, SparkSession

from cdclake.jobs.iceberg.file_target import FileTarget
from cdclake.jobs.stream.changelog_task import RESULT_DDL, ChangelogTask, TableTarget
from cdclake.jobs.stream.heartbeats import SentHeartbeat, parse_heartbeats
from cdclake.jobs.stream.partition_summary import PartitionSummary, combined
from cdclake.plan import Plan

log = logging.getLogger("cdclake.stream")

Ranges = Mapping[int, tuple[int, int]]  # Kafka partition -> first and next offset

# Spark 3.5 bounds an Arrow batch by its number of rows only. Larger values have a job of their own.
LARGE_VALUE_BYTES = 64 * 1024
ARROW_BYTES = 32 * 1024 * 1024
_ARROW_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
_changing_arrow_rows = threading.Lock()  # tables that fill their gaps share the session


@dataclass(slots=True)
class TableShare:
    """One table's part of a batch: files that no commit has yet, and what is in them."""

    files: list[str] = field(default_factory=list)  # descriptions
    refused: list[str] = field(default_factory=list)  # those of the quarantine's files
    parts: list[PartitionSummary] = field(default_factory=list)  # one per Kafka partition
    erased: int = 0  # events of erased rows, which were dropped
    error: str | None = None  # traceback of a task that failed for this table

    def has(self, sign: str) -> bool:
        """Return whether some event has the flag (`PartitionSummary.flags`)."""
        return any(part.has(sign) for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedBatch:
    """What a batch has, by topic, and the files that were written for it."""

    ranges: Mapping[str, Ranges]
    heartbeats: Sequence[SentHeartbeat]  # in Kafka's order
    shares: Mapping[str, TableShare]
    size: int  # bytes of all values

    @property
    def events(self) -> int:
        """Number of offsets in the ranges; transaction markers use offsets as well."""
        return sum(
            following - first
            for topic in self.ranges.values()
            for first, following in topic.values()
        )

    @property
    def epoch(self) -> int:
        """Newest epoch of the heartbeats; 0 without one."""
        return max((heartbeat.epoch for heartbeat in self.heartbeats), default=0)

    @property
    def has_read_heartbeat(self) -> bool:
        """Whether a heartbeat is a row of a snapshot."""
        return any(heartbeat.is_read for heartbeat in self.heartbeats)

    @property
    def heartbeat_committed_us(self) -> int:
        """Commit time of the newest heartbeat, in microseconds; 0 without one."""
        return max((heartbeat.committed_us for heartbeat in self.heartbeats), default=0)

    def arriving(self, plan: Plan) -> frozenset[str]:
        """Return the tables with events in the batch."""
        return frozenset(table.name for table in plan.tables if table.topic in self.ranges)


def run_changelog_job(
    records: DataFrame, plan: Plan, targets: Mapping[str, TableTarget], quarantine: FileTarget
) -> DecodedBatch:
    """Decode the records of the topics in `targets` and write files; nothing is committed.

    `records` has the columns of Kafka records and is read once, and again for large values.
    """
    task = ChangelogTask(plan.to_json(), targets, quarantine)
    rows = _run(records, task, f"octet_length(value) <= {LARGE_VALUE_BYTES}")
    largest = max((row["deferred"] or 0 for row in rows), default=0)
    if largest:
        large = records.where(f"octet_length(value) > {LARGE_VALUE_BYTES}")
        with _arrow_rows(records.sparkSession, max(1, ARROW_BYTES // largest)):
            rows += [row for row in _run(large, task, "true") if row["first"] is None]
    return _result(rows)


def _run(records: DataFrame, task: ChangelogTask, is_passed: str) -> list[Row]:
    cores = records.sparkSession.sparkContext.defaultParallelism
    passed = records.selectExpr(
        "topic",
        "partition",
        "offset",
        "key",
        f"IF({is_passed}, value, NULL) AS value",
        "headers",
        "CAST(octet_length(value) AS bigint) AS size",
    )
    return passed.coalesce(cores).mapInArrow(task, RESULT_DDL).collect()


@contextmanager
def _arrow_rows(spark: SparkSession, rows: int) -> Iterator[None]:
    with _changing_arrow_rows:
        before = spark.conf.get(_ARROW_ROWS)
        spark.conf.set(_ARROW_ROWS, str(rows))
        try:
            yield
        finally:
            spark.conf.set(_ARROW_ROWS, str(before))


def _result(rows: Iterable[Row]) -> DecodedBatch:
    ranges: dict[str, dict[int, tuple[int, int]]] = {}
    shares: dict[str, TableShare] = {}
    beats: list[tuple[int, int, str]] = []
    size = 0
    for row in rows:
        topic, partition = row["topic"], row["partition"]
        if row["error"] is not None:
            shares.setdefault(topic, TableShare()).error = row["error"]
            continue
        if row["erased"] is not None:
            shares.setdefault(topic, TableShare()).erased += row["erased"]
            continue
        if row["summary"] is not None:
            share = shares.setdefault(topic, TableShare())
            share.parts.append(PartitionSummary.from_json(row["summary"]))
            share.files += [row["file"]] if row["file"] is not None else []
            share.refused += [row["refused"]] if row["refused"] is not None else []
            continue
        first, following = row["first"], row["following"]
        known = ranges.setdefault(topic, {}).get(partition, (first, following))
        ranges[topic][partition] = (min(known[0], first), max(known[1], following))
        size += row["size"]
        if row["heartbeats"] is not None:
            beats.append((partition, first, row["heartbeats"]))
    for topic, share in shares.items():
        share.parts = combined(share.parts)
        if share.erased:
            log.info("topic %s: dropped %d older events of erased rows", topic, share.erased)
    sent = [beat for *_, text in sorted(beats) for beat in parse_heartbeats(text)]
    return DecodedBatch(ranges=ranges, heartbeats=sent, shares=shares, size=size)
