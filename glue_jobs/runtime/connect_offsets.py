"""Topic in which Kafka Connect stores the positions of source connectors.

It is read with Spark and written with the client that Spark ships: MSK Connect has no interface
for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from cdclake.jobs.jvm.java import java_with
from cdclake.jobs.runtime.kafka import End, client_settings, offsets

_CLASSES = (
    "java.util.HashMap",
    "org.apache.kafka.clients.producer.KafkaProducer",
    "org.apache.kafka.clients.producer.ProducerRecord",
)
_TEXT = "org.apache.kafka.common.serialization.StringSerializer"
_SAFE = {
    "acks": "all",
    # An idempotent producer would need another permission on the cluster; this is one record.
    "enable.idempotence": "false",
    "key.serializer": _TEXT,
    "value.serializer": _TEXT,
}


@dataclass(frozen=True, slots=True)
class ConnectOffsets:
    """Offsets topic of a Connect worker."""

    spark: SparkSession
    brokers: Mapping[str, str]
    topic: str

    def newest(self, *, last_records: int | None = None) -> dict[str, str | None]:
        """Return the newest value of each key, among the last records of each partition or all.

        A key is always in the same partition, so its records have an order.
        """
        first, end = self._bounds("earliest"), self._bounds("latest")
        if last_records is not None:
            first = {p: max(first[p], end[p] - last_records) for p in end}
        rows = (
            self.spark.read.format("kafka")
            .options(**self.brokers)
            .option("subscribe", self.topic)
            .option("startingOffsets", json.dumps({self.topic: first}))
            .option("endingOffsets", json.dumps({self.topic: end}))
            .load()
            .selectExpr("offset", "CAST(key AS STRING) AS key", "CAST(value AS STRING) AS value")
            .collect()
        )
        return {row["key"]: row["value"] for row in sorted(rows, key=lambda row: row["offset"])}

    def write(self, key: str, value: str) -> None:
        """Write a record into the partition in which Connect stores this key.

        The producer's partitioner is the one of Connect's producer. It returns when all replicas in
        sync have the record.
        """
        java: Any = java_with(self.spark, *_CLASSES)
        settings = client_settings(self.spark, self.brokers)
        for name, chosen in _SAFE.items():
            settings.put(name, chosen)
        producer = java.KafkaProducer(settings)
        try:
            producer.send(java.ProducerRecord(self.topic, key, value)).get()
        finally:
            producer.close()

    def _bounds(self, at: End) -> dict[int, int]:
        return offsets(self.spark, self.brokers, [self.topic], at).get(self.topic, {})
