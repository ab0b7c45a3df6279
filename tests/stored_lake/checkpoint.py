"""The stored checkpoint of the stream, as Spark reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable

from pyspark.sql import SparkSession

from cdclake.local.lake.spark_jobs import checkpoint_uri
from tests.recorded.recording import Record
from tests.stored_lake.stored import StoredLake

Offsets = dict[str, dict[str, int]]  # by topic and partition


def checkpoint_offsets(stored: StoredLake, spark: SparkSession, batch: int) -> Offsets:
    """Return where the batch ends in Kafka; it has to be the last one that the stream finished.

    A stream that is stopped may have planned the next batch, or not have noted its last one.
    """
    streaming = spark._jvm.org.apache.spark.sql.execution.streaming  # type: ignore[union-attr]
    folder = checkpoint_uri(stored.lake)
    planned = streaming.OffsetSeqLog(spark._jsparkSession, f"{folder}/offsets")
    noted = streaming.CommitLog(spark._jsparkSession, f"{folder}/commits")
    assert planned.getLatest().get()._1() in (batch, batch + 1)
    assert noted.getLatest().get()._1() in (batch - 1, batch)
    kafka = planned.get(batch).get().offsets().head().get()
    offsets: Offsets = json.loads(kafka.json())
    return offsets


def records_after(offsets: Offsets, records: Iterable[Record]) -> list[Record]:
    """Return the records that a stream which goes on from these offsets reads."""
    return [r for r in records if r.offset >= offsets[r.topic].get(str(r.partition), 0)]
