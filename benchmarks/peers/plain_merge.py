"""One merge-on-read MERGE a batch into an Iceberg v2 table, as anyone would write it today."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks.iceberg_catalog import EXTENSIONS, catalog_settings
from benchmarks.orders import COLUMNS, DATABASE, KEY, typed_columns, typed_values
from cdclake import naming

_TABLE = f"{naming.CATALOG}.{DATABASE}.orders"


class PlainMerge:
    """The newest change of each key, merged; deletes delete."""

    jars: ClassVar[str] = "jars/spark"
    given: ClassVar[str] = "merge-on-read in all three modes, the order of the source's log"
    cannot: ClassVar[str] = (
        "refuse a replayed or late change, keep a deleted row deleted, keep a value that was not "
        "sent, say which batch a commit holds"
    )

    @staticmethod
    def settings(warehouse: str) -> Mapping[str, str]:
        return {**EXTENSIONS, **catalog_settings(warehouse)}

    def __init__(self, spark: SparkSession, warehouse: str) -> None:
        self._spark = spark

    def load(self, rows: DataFrame) -> None:
        self._spark.sql(f"CREATE DATABASE IF NOT EXISTS {naming.CATALOG}.{DATABASE}")
        modes = ", ".join(
            f"'write.{kind}.mode' = 'merge-on-read'" for kind in ("merge", "update", "delete")
        )
        self._spark.sql(
            f"CREATE TABLE {_TABLE} ({typed_columns()}) USING iceberg "
            f"TBLPROPERTIES ('format-version' = '2', {modes})"
        )
        rows.select(*typed_values()).writeTo(_TABLE).append()

    def apply(self, changes: DataFrame) -> None:
        merge_newest(self._spark, _TABLE, changes)

    def live_rows(self) -> DataFrame:
        return self._spark.table(_TABLE).select(*COLUMNS)


def merge_newest(spark: SparkSession, table: str, changes: DataFrame) -> None:
    """Merge the newest change of each key; deletes delete."""
    newest_changes(changes).createOrReplaceTempView("changes")
    named = ", ".join(COLUMNS)
    spark.sql(
        f"MERGE INTO {table} AS t USING changes AS s ON t.{KEY} = s.{KEY} "
        "WHEN MATCHED AND s.is_delete THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {', '.join(f't.{c} = s.{c}' for c in COLUMNS)} "
        f"WHEN NOT MATCHED AND NOT s.is_delete THEN INSERT ({named}) "
        f"VALUES ({', '.join(f's.{c}' for c in COLUMNS)})"
    )


def newest_changes(changes: DataFrame) -> DataFrame:
    """Each key's newest change: the declared columns, and `is_delete`."""
    whole = F.struct(*changes.columns)
    newest = changes.groupBy(KEY).agg(F.max_by(whole, naming.POSITION).alias("newest"))
    is_delete = (F.col(naming.OP) == "d").alias("is_delete")
    return newest.select("newest.*").select(*typed_values(), is_delete)
