"""The source, the connector and the lake, as a deployed job reaches them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from cdclake.debezium.incremental_snapshot import tables_being_read
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.reader.job_reader import job_reader
from cdclake.jobs.runtime.arguments import brokers_of
from cdclake.jobs.runtime.kafka import End, offsets
from cdclake.jobs.runtime.session import open_session
from cdclake.jobs.runtime.source import deployed_dsn, is_signalled, signal_snapshot
from cdclake.plan import Plan, Table

_LAST_OFFSET_RECORDS = 100  # of the connector's offsets: the newest of each key is among them


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedBackend:
    """What there is around one pipeline's stream."""

    plan: Plan
    spark: SparkSession
    brokers: Mapping[str, str]
    offsets_topic: str  # Connect's, of which REST would tell; MSK Connect has no REST
    reader: Reader
    dsn: str

    def is_read(self, table: Table) -> bool:
        """Whether the connector reads the table now, or is going to."""
        return table.source in self._being_read()

    def has_lost(self, table: Table, resume: Mapping[int, int]) -> bool:
        """Whether Kafka has deleted records of the topic that come after `resume`."""
        first = self._offsets(table.topic, "earliest")
        return any(low > resume.get(partition, low) for partition, low in first.items())

    def newest_position(self, table: Table) -> str | None:
        """The greatest position in the table's log; InputError if there is no log."""
        return self.reader.newest_position(table)

    def notified(self) -> int:
        """The offset that the connector's next notification will have."""
        return self._offsets(self.plan.notification_topic)[0]

    def signal(self, table: Table, request: str) -> None:
        """Have the connector read the table again for the request while the others flow."""
        signal_snapshot(self.dsn, [table], request)

    def is_signalled(self, request: str) -> bool:
        """Whether the connector was asked to read for the request."""
        return is_signalled(self.dsn, request)

    def _offsets(self, topic: str, at: End = "latest") -> dict[int, int]:
        return offsets(self.spark, self.brokers, [topic], at).get(topic, {})

    def _being_read(self) -> frozenset[str]:
        topic = self.offsets_topic
        first, end = self._offsets(topic, "earliest"), self._offsets(topic)
        starts = {p: max(first[p], end[p] - _LAST_OFFSET_RECORDS) for p in end}
        rows = (
            self.spark.read.format("kafka")
            .options(**self.brokers)
            .option("subscribe", topic)
            .option("startingOffsets", json.dumps({topic: starts}))
            .load()
            .selectExpr("offset", "CAST(key AS STRING) AS key", "CAST(value AS STRING) AS value")
            .collect()
        )
        newest = {row["key"]: row["value"] for row in sorted(rows, key=lambda row: row["offset"])}
        stored = (json.loads(value) for value in newest.values() if value)
        return frozenset(table for offset in stored for table in tables_being_read(offset))


@contextmanager
def open_backend(plan: Plan, arguments: Mapping[str, str]) -> Iterator[DeployedBackend]:
    """What the job's arguments tell of, as long as the block lasts."""
    brokers = brokers_of(arguments)
    spark = open_session(arguments["JOB_NAME"])
    with deployed_dsn(arguments) as dsn, TemporaryDirectory() as spill:
        yield DeployedBackend(
            plan=plan,
            spark=spark,
            brokers=brokers,
            offsets_topic=arguments["offsets"],
            reader=job_reader(spark, plan, Path(spill)),
            dsn=dsn,
        )
