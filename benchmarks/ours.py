"""cdclake's own way: the product's tables, its fenced append, its guarded apply, its stamps."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.iceberg_catalog import catalog_settings
from benchmarks.orders import COLUMNS, DATABASE, ORDERS, PLAN
from cdclake import naming
from cdclake.iceberg.catalog_conf import catalog_conf
from cdclake.iceberg.merge import loaded_rows
from cdclake.iceberg.schemas import all_schemas
from cdclake.iceberg.views import AppliedThrough
from cdclake.jobs.apply.state_table import apply_changes
from cdclake.jobs.apply.state_update import StateUpdate
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp, moment_after, state_stamp_json
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.table_handle import TableHandle
from cdclake.jobs.iceberg.views import viewed
from cdclake.jobs.stream.append import append_changes, ingested_at_column


class Ours:
    """Guard, tombstones, value positions of every column that can have some, stamps: all on."""

    jars: ClassVar[str] = "jars/spark"
    given: ClassVar[str] = "the settings that a deployment gives its jobs"
    cannot: ClassVar[str] = ""

    @staticmethod
    def settings(warehouse: str) -> Mapping[str, str]:
        # Spark itself switches it off for whatever a streaming query's batch runs.
        streaming = {"spark.sql.adaptive.enabled": "false"}
        conf = catalog_conf(warehouse)
        is_far = warehouse.startswith("s3://")
        own_access = {name: conf[name] for name in conf if is_far and name.endswith(".io-impl")}
        return {**conf, **catalog_settings(warehouse), **own_access, **streaming}

    def __init__(self, spark: SparkSession, warehouse: str) -> None:
        ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
        self.lake = LakeTables(spark, DATABASE)
        self._ingested = 0
        self._changelog = TableHandle(self.lake, ORDERS.changes)
        self._update = StateUpdate(self.lake, ORDERS, changelog=self._changelog)

    def load(self, rows: DataFrame) -> None:
        self.lake.spark.sql(f"CREATE DATABASE IF NOT EXISTS {naming.CATALOG}.{DATABASE}")
        for schema in all_schemas(PLAN):
            self.lake.create(schema)
        self._ingested = time.time_ns() // 1000
        # As if each of these columns once had had a value that was not sent: from then on the merge
        # minds the position of each value.
        newest = rows.agg(F.max(naming.POSITION)).collect()[0][0]
        stamp = state_stamp_json(AppliedThrough(self._ingested, "", ORDERS.toastable, newest))
        with viewed(rows) as view:
            state = self.lake.spark.sql(loaded_rows(ORDERS, view))
            writer = state.writeTo(self.lake.qualified(ORDERS.name))
            writer.option(f"snapshot-property.{naming.STAMP_PROPERTY}", stamp).append()

    def append(self, changes: DataFrame) -> int:
        """Append to the log as the stream does, fence and stamp included; the moment of it."""
        stamped = self._changelog.stamped()
        stamp = ChangesStamp.from_json(stamped.stamp) if stamped.stamp else ChangesStamp()
        moment = moment_after(replace(stamp, ingested_through=self._ingested))
        append_changes(
            _ingested_at(changes, moment),
            self._changelog,
            read_from=stamped.snapshot_id,
            follows=stamp.ingested_through,
            stamp=ChangesStamp(ingested_through=moment, epoch=1),
        )
        return moment

    def apply(self, changes: DataFrame) -> None:
        """Append the changes to the log, and bring them into the table from there."""
        self.apply_pending(self.append(changes))

    def apply_pending(self, moment: int) -> None:
        """Bring the log's rows that were ingested up to `moment` into the table."""
        apply_changes(self._update, through=moment)
        self._ingested = moment

    def forget(self) -> None:
        """Load the tables again: another writer has committed."""
        self._update.forget()

    def live_rows(self) -> DataFrame:
        return self.lake.read(ORDERS.name).where(f"NOT {naming.DELETED}").select(*COLUMNS)


def _ingested_at(changes: DataFrame, moment: int) -> DataFrame:
    return changes.selectExpr("*", ingested_at_column(moment))
