"""Changes as the Kafka records that Debezium would have written of them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.orders import COLUMNS, KEY, ORDERS
from cdclake import naming

REFUSED_EVERY = 1000
# SQL condition, which Spark and DuckDB evaluate over the changes.
IS_REFUSED = f"{naming.OFFSET} % {REFUSED_EVERY} = 0 AND price IS NOT NULL"
_TOO_LARGE = "12345678901.00"  # for numeric(12,2)


def records_of(
    changes: DataFrame, *, refuse: bool, added: Mapping[str, str] | None = None
) -> DataFrame:
    """Records of the table's topic, one for each change in the log's columns, at its offset.

    With `refuse`, each event whose offset `REFUSED_EVERY` divides has a price that its type cannot
    hold; a delete among them has no price, and is accepted. `added` are further columns and the SQL
    of their values.
    """
    price = F.col("price")
    if refuse:
        price = F.when(F.expr(IS_REFUSED), F.lit(_TOO_LARGE)).otherwise(price)
    values = [price.alias(c) if c == "price" else F.col(c) for c in COLUMNS]
    further = [F.expr(value).alias(column) for column, value in (added or {}).items()]
    row = F.struct(*values, *further)
    event = F.struct(
        F.lit(None).cast("string").alias("before"),
        F.when(F.col(naming.OP) != "d", row).alias("after"),
        _source().alias("source"),
        F.lit(None).cast("string").alias("transaction"),
        F.col(naming.OP).alias("op"),
        *_clocks("ts_ms", "ts_us", "ts_ns"),
        F.col(naming.EPOCH).cast("string").alias("cdc_epoch"),
    )
    whole = {"ignoreNullFields": "false"}
    return changes.select(
        F.lit(ORDERS.topic).alias("topic"),
        F.col(naming.PARTITION).alias("partition"),
        F.col(naming.OFFSET).alias("offset"),
        F.to_json(F.struct(KEY)).cast("binary").alias("key"),
        F.to_json(event, whole).cast("binary").alias("value"),
        F.lit(None).cast("array<struct<key: string, value: binary>>").alias("headers"),
    )


def _source() -> Expression:
    sequence = F.concat(
        F.lit('["'), F.col(naming.PREV_COMMIT_LSN), F.lit('","'), F.col(naming.LSN), F.lit('"]')
    )
    return F.struct(
        F.lit("3.7.0.Final").alias("version"),
        F.lit("postgresql").alias("connector"),
        F.lit("bench").alias("name"),
        F.lit("false").alias("snapshot"),
        F.lit("bench").alias("db"),
        sequence.alias("sequence"),
        *_clocks("ts_ms", "ts_us", "ts_ns"),
        F.lit("public").alias("schema"),
        F.lit("orders").alias("table"),
        F.col(naming.TX_ID).alias("txId"),
        F.col(naming.LSN).alias("lsn"),
        F.lit(None).cast("bigint").alias("xmin"),
    )


def _clocks(*names: str) -> list[Expression]:
    """The moment of the commit in each unit that Debezium writes it in."""
    micros = F.unix_micros(F.col(naming.COMMITTED_AT))
    units = {"ts_ms": F.floor(micros / 1000), "ts_us": micros, "ts_ns": micros * 1000}
    return [units[name].alias(name) for name in names]
