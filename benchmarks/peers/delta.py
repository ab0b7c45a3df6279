"""Delta Lake 3.3: one MERGE a batch into a table with deletion vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession

from benchmarks.orders import COLUMNS, typed_columns, typed_values
from benchmarks.peers.plain_merge import merge_newest


class Delta:
    """The same MERGE as the plain one, in Delta's format."""

    jars: ClassVar[str] = "benchmarks/jars/delta"
    given: ClassVar[str] = (
        "deletion vectors, two partitions for its own log, the order of the source's log"
    )
    cannot: ClassVar[str] = (
        "refuse a replayed or late change, keep a deleted row deleted, keep a value that was not "
        "sent, say which batch a commit holds"
    )

    @staticmethod
    def settings(warehouse: str) -> Mapping[str, str]:
        return {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.databricks.delta.merge.deletionVectors.persistent": "true",
            # Of its own log's entries; its default of 50 is for clusters.
            "spark.databricks.delta.snapshotPartitions": "2",
        }

    def __init__(self, spark: SparkSession, warehouse: str) -> None:
        self._spark = spark
        self._table = f"delta.`{warehouse}/orders`"

    def load(self, rows: DataFrame) -> None:
        self._spark.sql(
            f"CREATE TABLE {self._table} ({typed_columns()}) USING delta "
            "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
        )
        path = self._table.removeprefix("delta.`").removesuffix("`")
        rows.select(*typed_values()).write.format("delta").mode("append").save(path)

    def apply(self, changes: DataFrame) -> None:
        merge_newest(self._spark, self._table, changes)

    def live_rows(self) -> DataFrame:
        return self._spark.sql(f"SELECT {', '.join(COLUMNS)} FROM {self._table}")
