"""Records of rows with large values, made by Spark: no driver holds them."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.spark.events import Engine


def large_records(engine: Engine, rows: int) -> DataFrame:
    """Kafka records that create so many rows of 1 MB, from id and offset 0 on."""
    event = engine.event("c", 0, 0, id=7, v="VALUE")
    (_, _, _, key, value, _) = engine.record(0, event)
    head, tail = value.decode().split("VALUE")
    before, after = head.split('"id":7')
    number = F.col("id").cast("string")
    large = F.expr("repeat('x', 1000000)")
    parts = (F.lit(before + '"id":'), number, F.lit(after), large, F.lit(tail))
    return engine.spark.range(rows).select(
        F.lit(engine.table.topic).alias("topic"),
        F.lit(0).alias("partition"),
        F.col("id").alias("offset"),
        F.concat(F.lit(key.decode().replace("7}", "")), number, F.lit("}"))
        .cast("binary")
        .alias("key"),
        F.concat(*parts).cast("binary").alias("value"),
        F.lit(None).cast("array<struct<key: string, value: binary>>").alias("headers"),
    )
