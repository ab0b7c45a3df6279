"""The way of the public AWS samples, told again: order by time, two copy-on-write MERGEs, counts.

Their table has no write mode, so Iceberg's own default holds, copy-on-write. Their job counts the
batch before it begins, and what it upserts and deletes before either MERGE, and it keeps the row of
the newest timestamp by a window. One thing is mended here: their deletes take the key from a row
that a delete does not have, and so never happen; here they do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from benchmarks.iceberg_catalog import EXTENSIONS, catalog_settings
from benchmarks.orders import COLUMNS, DATABASE, KEY, typed_columns, typed_values
from cdclake import naming

_TABLE = f"{naming.CATALOG}.{DATABASE}.orders"


class SamplesWay:
    """Two MERGEs a batch, newest by clock."""

    jars: ClassVar[str] = "jars/spark"
    given: ClassVar[str] = "deletes that find their key, and a clock that never ties"
    cannot: ClassVar[str] = (
        "order by the source's log, refuse a replayed or late change, keep a deleted row deleted, "
        "keep a value that was not sent, commit a batch at once"
    )

    @staticmethod
    def settings(warehouse: str) -> Mapping[str, str]:
        return {**EXTENSIONS, **catalog_settings(warehouse)}

    def __init__(self, spark: SparkSession, warehouse: str) -> None:
        self._spark = spark

    def load(self, rows: DataFrame) -> None:
        self._spark.sql(f"CREATE DATABASE IF NOT EXISTS {naming.CATALOG}.{DATABASE}")
        self._spark.sql(
            f"CREATE TABLE {_TABLE} ({typed_columns()}) USING iceberg "
            "TBLPROPERTIES ('format-version' = '2')"
        )
        rows.select(*typed_values()).writeTo(_TABLE).append()

    def apply(self, changes: DataFrame) -> None:
        if changes.count() == 0:
            return
        newest_first = Window.partitionBy(KEY).orderBy(F.desc(naming.COMMITTED_AT))
        numbered = changes.withColumn("nth", F.row_number().over(newest_first))
        newest = numbered.where("nth = 1")
        upserts = newest.where(f"{naming.OP} <> 'd'").select(*typed_values())
        deletes = newest.where(f"{naming.OP} = 'd'").select(KEY)
        if upserts.count() > 0:
            upserts.createOrReplaceTempView("upserts")
            self._spark.sql(
                f"MERGE INTO {_TABLE} AS t USING upserts AS s ON t.{KEY} = s.{KEY} "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )
        if deletes.count() > 0:
            deletes.createOrReplaceTempView("deletes")
            self._spark.sql(
                f"MERGE INTO {_TABLE} AS t USING deletes AS s ON t.{KEY} = s.{KEY} "
                "WHEN MATCHED THEN DELETE"
            )

    def live_rows(self) -> DataFrame:
        return self._spark.table(_TABLE).select(*COLUMNS)
