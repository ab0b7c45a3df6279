"""Hudi 1.1, merge-on-read, with the bucket index: a key's file follows from its hash."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.orders import COLUMNS, KEY, typed_values
from cdclake import naming

_ROWS_PER_BUCKET = 1_000_000


class Hudi:
    """An upsert a batch; the newest position of a key wins, a delete is a marked row."""

    jars: ClassVar[str] = "benchmarks/jars/hudi"
    given: ClassVar[str] = (
        "the bucket index, a bucket for each million rows, no metadata table, no timeline server, "
        "no compaction meanwhile, its own order by position"
    )
    cannot: ClassVar[str] = (
        "keep a deleted row deleted after a compaction, keep a value that was not sent, say which "
        "batch a commit holds"
    )

    @staticmethod
    def settings(warehouse: str) -> Mapping[str, str]:
        return {
            "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
            "spark.kryo.registrator": "org.apache.spark.HoodieSparkKryoRegistrar",
            "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
        }

    def __init__(self, spark: SparkSession, warehouse: str) -> None:
        self._spark = spark
        self._path = f"{warehouse}/orders"
        self._options: dict[str, str] = {}

    def load(self, rows: DataFrame) -> None:
        buckets = rows.count() // _ROWS_PER_BUCKET + 2
        self._options = _options(buckets)
        self._write(rows, "bulk_insert")

    def apply(self, changes: DataFrame) -> None:
        self._write(changes, "upsert")

    def live_rows(self) -> DataFrame:
        return self._spark.read.format("hudi").load(self._path).select(*COLUMNS)

    def _write(self, rows: DataFrame, operation: str) -> None:
        is_deleted = (F.col(naming.OP) == "d").alias("_hoodie_is_deleted")
        values = rows.select(*typed_values(), naming.POSITION, is_deleted)
        options = {**self._options, "hoodie.datasource.write.operation": operation}
        values.write.format("hudi").options(**options).mode("append").save(self._path)


def _options(buckets: int) -> dict[str, str]:
    return {
        "hoodie.table.name": "orders",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": KEY,
        "hoodie.datasource.write.precombine.field": naming.POSITION,
        "hoodie.datasource.write.keygenerator.class": (
            "org.apache.hudi.keygen.NonpartitionedKeyGenerator"
        ),
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "SIMPLE",
        "hoodie.bucket.index.hash.field": KEY,
        "hoodie.bucket.index.num.buckets": str(buckets),
        "hoodie.metadata.enable": "false",
        "hoodie.embed.timeline.server": "false",
        "hoodie.compact.inline": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.upsert.shuffle.parallelism": "2",
        "hoodie.bulkinsert.shuffle.parallelism": "2",
    }
