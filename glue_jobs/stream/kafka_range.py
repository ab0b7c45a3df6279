"""Reads of Kafka between explicit offsets, for example of what a stopped table has missed.

Spark resolves "earliest" and "latest" again each time that it evaluates a frame, and the stream
evaluates a gap up to three times. Only explicit offsets give each evaluation the same records.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdclake.errors import TableError
from cdclake.jobs.iceberg.error_policy import Kind, cause_of, policy
from cdclake.jobs.runtime.kafka import bounds
from cdclake.jobs.stream.changelog_job import Ranges
from cdclake.plan import Table

log = logging.getLogger("cdclake.stream")

RECORD_COLUMNS = ("topic", "partition", "offset", "key", "value", "headers")
# A consumer holds the records of its last poll, which Kafka bounds by number and compressed bytes
# only. Reading 200,000 small records took as long as with Kafka's default of 500 (measured).
MAX_POLL_RECORDS = 100
POLL_RECORDS_OPTION = "kafka.max.poll.records"
TopicRanges = dict[str, dict[int, tuple[int, int]]]  # by topic and partition


def read_gap(
    spark: SparkSession,
    brokers: dict[str, str],
    table: Table,
    resume: dict[int, int],
    batch_ends: dict[int, int],
) -> tuple[DataFrame, Ranges]:
    """Read the table's records from the offsets `resume` on; return them and their ranges.

    Partitions that `resume` does not contain are read from their beginning. The read ends where the
    running batch ends or, for a partition without records in it, at the partition's current end.
    Each evaluation of the frame has the same records, or fails if Kafka has deleted one of them.
    Raise TableError if Kafka no longer has the beginning of the gap.
    """
    try:
        return _read_gap(spark, brokers, table.topic, resume, batch_ends)
    except (PySparkException, Py4JJavaError) as failure:
        if cause_of(failure, Kind.UNAVAILABLE):
            raise
        log.exception("table %s: cannot read its gap", table.name)
        remedy = policy(Kind.KAFKA_UNREADABLE).remedy
        raise TableError(table.name, "cannot read its gap from Kafka", remedy) from failure


def _read_gap(
    spark: SparkSession,
    brokers: dict[str, str],
    topic: str,
    resume: dict[int, int],
    batch_ends: dict[int, int],
) -> tuple[DataFrame, Ranges]:
    wanted = gap_ranges(bounds(spark, brokers, topic), resume, batch_ends)
    records = read_ranges(spark, brokers, {topic: wanted})
    rows = (
        records.groupBy("partition")
        .agg(F.min("offset").alias("first"), (F.max("offset") + 1).alias("following"))
        .collect()
    )
    return records, {row["partition"]: (row["first"], row["following"]) for row in rows}


def gap_ranges(
    retained: Ranges, resume: Mapping[int, int], batch_ends: Mapping[int, int]
) -> dict[int, tuple[int, int]]:
    """Return the first and the next offset of each partition's gap; they are equal without one.

    >>> gap_ranges({0: (0, 9), 1: (3, 9)}, {0: 7}, {1: 5})
    {0: (7, 9), 1: (3, 5)}
    """
    gap = {}
    for partition, (first, end) in retained.items():
        start = resume.get(partition, first)
        # A batch that is repeated after a crash may end before the offset to resume at.
        gap[partition] = (start, max(start, batch_ends.get(partition, end)))
    return gap


def read_ranges(spark: SparkSession, brokers: dict[str, str], ranges: TopicRanges) -> DataFrame:
    """Read the records from the first offset of each range to its following offset.

    The read fails if Kafka no longer has one of them.
    """
    assigned = {topic: list(partitions) for topic, partitions in ranges.items()}
    return (
        spark.read.format("kafka")
        .options(**brokers)
        .option("assign", json.dumps(assigned))
        .option("startingOffsets", _ends(ranges, 0))
        .option("endingOffsets", _ends(ranges, 1))
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .option(POLL_RECORDS_OPTION, str(MAX_POLL_RECORDS))
        .load()
        .select(*RECORD_COLUMNS)
    )


def _ends(ranges: TopicRanges, end: int) -> str:
    return json.dumps({t: {p: span[end] for p, span in r.items()} for t, r in ranges.items()})
