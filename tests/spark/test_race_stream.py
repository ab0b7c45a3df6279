"""The hand-written stream that ours is compared with: its fold of a batch, and its MERGE."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from benchmarks.many_tables import TEXT, plan_of_many
from benchmarks.race.spark_stream import create_table, merge, newest_rows

pytestmark = pytest.mark.spark

PLAN = plan_of_many(5, 10)
TABLE = PLAN.tables[4]  # has a text that is stored out of line
PLACEHOLDER = PLAN.placeholder
MOMENT = "2026-01-01T00:00:00.000001Z"


def row(key: int, status: str, text: str) -> dict[str, Any]:
    known = {"id": key, "customer_id": 1, "quantity": 2, "price": "0.97", "status": status}
    times = {"created_at": MOMENT, "updated_at": MOMENT}
    return {**known, "note": "n", "paid": True, **times, TEXT: text}


def event(op: str, after: dict[str, Any]) -> str:
    before = {**dict.fromkeys(after), "id": after["id"]}
    sides = (before, None) if op == "d" else (None, after)
    return json.dumps({"op": op, "before": sides[0], "after": sides[1]})


def apply(spark: SparkSession, values: Sequence[str | None]) -> dict[int, tuple[str, str]]:
    """Merge one batch, and return status and text by key."""
    records = [(number, value) for number, value in enumerate(values)]
    batch = spark.createDataFrame(records, "offset BIGINT, value STRING")
    newest_rows(batch, TABLE, PLACEHOLDER).createOrReplaceTempView("race_changes")
    spark.sql(merge(TABLE, PLAN.lake_database, "race_changes"))
    table = spark.table(f"lake.{PLAN.lake_database}.{TABLE.name}")
    return {r["id"]: (r["status"], r[TEXT]) for r in table.collect()}


def test_batches_of_the_race_leave_the_source_rows(spark: SparkSession) -> None:
    spark.sql(f"CREATE DATABASE IF NOT EXISTS lake.{PLAN.lake_database}")
    spark.sql(create_table(TABLE, PLAN.lake_database))
    first = [
        event("r", row(1, "open", "one")),
        event("c", row(2, "open", "two")),
        event("u", row(2, "paid", PLACEHOLDER)),  # its text is in the same batch
        event("c", row(3, "open", "three")),
        event("d", row(3, "open", "")),
        None,  # the tombstone of a delete
    ]
    assert apply(spark, first) == {1: ("open", "one"), 2: ("paid", "two")}
    second = [
        event("u", row(1, "paid", PLACEHOLDER)),  # its text is in the table
        event("u", row(2, "open", "new")),
        event("u", row(2, "sent", PLACEHOLDER)),
        event("c", row(4, "open", "four")),
    ]
    after = {1: ("paid", "one"), 2: ("sent", "new"), 4: ("open", "four")}
    assert apply(spark, second) == after
    third = [event("d", row(1, "", "")), event("c", row(1, "back", "again"))]
    assert apply(spark, third) == {**after, 1: ("back", "again")}
