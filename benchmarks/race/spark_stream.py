"""`python -m benchmarks.race.spark_stream QUESTION`: a stream that an engineer writes by hand.

One streaming query over all topics. Each batch is cached; for each table in it come `from_json`
with the table's schema, the newest change of each key, and one merge-on-read MERGE, four tables at
a time. A value that PostgreSQL did not send is the batch's last one, otherwise the row's.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdclake.iceberg.dialect import SPARK
from cdclake.naming import CATALOG
from cdclake.plan import Plan, Table

_TABLES_AT_ONCE = 4
_MODES = {f"write.{kind}.mode": "merge-on-read" for kind in ("merge", "update", "delete")}
# A batch has few rows of a table: a shuffle that distributes them would only cost.
_PROPERTIES = {"format-version": "2", **_MODES, "write.merge.distribution-mode": "none"}
_OFFSET, _IS_DELETE = "cdc_offset", "cdc_is_delete"


class Merges:
    """The tables, and the merge of a batch of the topics' records into them."""

    def __init__(self, spark: SparkSession, plan: Plan) -> None:
        self._spark, self._plan = spark, plan
        self._by_topic = {table.topic: table for table in plan.tables}
        self._pool = ThreadPoolExecutor(_TABLES_AT_ONCE)

    def create_tables(self) -> None:
        """Create each table, empty, in Iceberg's format version 2."""
        for table in self._plan.tables:
            self._spark.sql(create_table(table, self._plan.lake_database))

    def apply(self, batch: DataFrame, _: int) -> None:
        """Merge one batch of records, and return when every table has it."""
        batch.persist()
        try:
            topics = [row.topic for row in batch.select("topic").distinct().collect()]
            list(self._pool.map(lambda topic: self._merge(batch, topic), topics))
        finally:
            batch.unpersist()

    def _merge(self, batch: DataFrame, topic: str) -> None:
        table, view = self._by_topic[topic], f"changes_of_{self._by_topic[topic].name}"
        records = batch.where(F.col("topic") == topic)
        newest_rows(records, table, self._plan.placeholder).createOrReplaceTempView(view)
        batch.sparkSession.sql(merge(table, self._plan.lake_database, view))


def create_table(table: Table, database: str) -> str:
    """Return the statement that creates the table with its declared columns."""
    columns = ", ".join(f"{SPARK.name(c.name)} {c.column_type.state}" for c in table.columns)
    properties = ", ".join(f"'{name}' = '{value}'" for name, value in _PROPERTIES.items())
    name = _target(table, database)
    return f"CREATE TABLE {name} ({columns}) USING iceberg TBLPROPERTIES ({properties})"


def newest_rows(records: DataFrame, table: Table, placeholder: str) -> DataFrame:
    """Return each key's newest change, deletes too.

    A text that was not sent is the last one that the records have of the key, otherwise NULL, and
    `keep_<column>` is true.
    """
    row = ", ".join(f"{SPARK.name(c.name)}: {c.column_type.state}" for c in table.columns)
    schema = f"op STRING, before STRUCT<{row}>, after STRUCT<{row}>"
    event = F.from_json(F.col("value").cast("string"), schema)
    rows = (
        records.where("value IS NOT NULL")
        .select(F.col("offset").alias(_OFFSET), event.alias("event"))
        .selectExpr(
            _OFFSET,
            f"event.op = 'd' AS {_IS_DELETE}",
            "IF(event.op = 'd', event.before, event.after) AS row",
        )
        .select(_OFFSET, _IS_DELETE, "row.*")
    )
    newest = F.max_by(F.struct(*rows.columns), _OFFSET).alias("newest")
    sent = [_last_sent(name, placeholder) for name in _texts(table)]
    grouped = rows.groupBy(*table.key).agg(newest, *sent)
    unsent = {name: f"NOT newest.{_IS_DELETE} AND newest.`{name}` = {SPARK.text(placeholder)}"
              for name in _texts(table)}  # fmt: skip
    values = [
        f"IF({unsent[c.name]}, `sent_{c.name}`, newest.`{c.name}`) AS `{c.name}`"
        if c.name in unsent
        else f"newest.`{c.name}` AS `{c.name}`"
        for c in table.columns
    ]
    keeps = [f"{how} AND `sent_{name}` IS NULL AS `keep_{name}`" for name, how in unsent.items()]
    return grouped.selectExpr(*values, f"newest.{_IS_DELETE} AS {_IS_DELETE}", *keeps)


def merge(table: Table, database: str, view: str) -> str:
    """Return the MERGE of the rows of `newest_rows` in the view."""
    texts = set(_texts(table))
    names = [f"`{c.name}`" for c in table.columns]
    updates = ", ".join(
        f"t.`{c.name}` = IF(s.`keep_{c.name}`, t.`{c.name}`, s.`{c.name}`)"
        if c.name in texts
        else f"t.`{c.name}` = s.`{c.name}`"
        for c in table.columns
    )
    keys = " AND ".join(f"t.`{name}` = s.`{name}`" for name in table.key)
    return (
        f"MERGE INTO {_target(table, database)} AS t USING {view} AS s ON {keys} "
        f"WHEN MATCHED AND s.{_IS_DELETE} THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {updates} "
        f"WHEN NOT MATCHED AND NOT s.{_IS_DELETE} THEN INSERT ({', '.join(names)}) "
        f"VALUES ({', '.join(f's.{name}' for name in names)})"
    )


def _last_sent(name: str, placeholder: str) -> Any:
    was_sent = f"NOT {_IS_DELETE} AND `{name}` <> {SPARK.text(placeholder)}"
    return F.expr(f"max_by(`{name}`, {_OFFSET}) FILTER (WHERE {was_sent})").alias(f"sent_{name}")


def _texts(table: Table) -> list[str]:
    """Return the columns that may be stored out of line."""
    return [c.name for c in table.columns if c.type == "text"]


def _target(table: Table, database: str) -> str:
    return f"`{CATALOG}`.`{database}`.`{table.name}`"


def main() -> int:
    """Stream until the process is ended; the question is a JSON file."""
    question = json.loads(Path(sys.argv[1]).read_text())
    plan = Plan.from_json(question["plan"])
    builder = SparkSession.builder.appName("hand-written")
    for name, value in question["settings"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    merges = Merges(spark, plan)
    merges.create_tables()
    records = spark.readStream.format("kafka").options(**question["kafka"])
    query = (
        records.option("subscribe", ",".join(table.topic for table in plan.tables))
        .option("startingOffsets", "earliest")
        .load()
        .writeStream.foreachBatch(merges.apply)
        .option("checkpointLocation", question["checkpoint"])
        .trigger(processingTime=f"{plan.trigger_seconds} seconds")
        .start()
    )
    query.awaitTermination()
    return 0


if __name__ == "__main__":
    sys.exit(main())
