"""Records of the topics that Firehose reads, as the job of the comparison reads them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import SparkSession

from cdclake.jobs.runtime.kafka import offsets
from cdclake.jobs.stream.kafka_range import read_ranges

Offsets = Mapping[str, Mapping[int, int]]  # by topic and partition
Ranges = Mapping[int, tuple[int, int]]  # by partition: the first offset, and the one that follows


class ReadRecord(NamedTuple):
    """Record of a topic."""

    partition: int
    offset: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class TopicRecords:
    """Topics of a deployment's Kafka cluster; `brokers` are Spark's options for it."""

    spark: SparkSession
    brokers: dict[str, str]

    def begins(self, topics: Collection[str]) -> Offsets:
        """Return the first offsets that Kafka still has."""
        return offsets(self.spark, self.brokers, topics, "earliest")

    def ends(self, topics: Collection[str]) -> Offsets:
        """Return the current end offsets."""
        return offsets(self.spark, self.brokers, topics)

    def read(self, topic: str, ranges: Ranges) -> Sequence[ReadRecord]:
        """Return the records of these ranges, in the order of their offsets."""
        found = read_ranges(self.spark, self.brokers, {topic: dict(ranges)})
        rows = found.select("partition", "offset", "value").orderBy("partition", "offset").collect()
        return [
            ReadRecord(row["partition"], row["offset"], row["value"] and bytes(row["value"]))
            for row in rows
        ]
