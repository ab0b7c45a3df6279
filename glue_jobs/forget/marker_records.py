"""Records of the heartbeat table's topic, read by Spark: a job has no other Kafka client."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from cdclake.jobs.runtime.kafka import offsets


@dataclass(frozen=True, slots=True)
class MarkerRecords:
    """Heartbeat topic as a job reads it."""

    spark: SparkSession
    brokers: Mapping[str, str]
    topic: str
    poll_interval_s: float = 2.0

    def ends(self) -> dict[int, int]:
        """Return the end offset of each partition."""
        return offsets(self.spark, self.brokers, [self.topic]).get(self.topic, {})

    def values_since(self, ends: dict[int, int]) -> Iterable[bytes]:
        """Return the values of the records from these offsets on."""
        now = self.ends()
        if now == ends:
            return []
        first = {partition: ends.get(partition, 0) for partition in now}
        rows = (
            self.spark.read.format("kafka")
            .options(**self.brokers)
            .option("subscribe", self.topic)
            .option("startingOffsets", json.dumps({self.topic: first}))
            .option("endingOffsets", json.dumps({self.topic: now}))
            .load()
            .where("value IS NOT NULL")
            .select("value")
            .collect()
        )
        return [bytes(row["value"]) for row in rows]
