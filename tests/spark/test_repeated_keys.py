"""Rows of one key are found whatever the key's columns are called."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from cdclake.derived_table import DerivedTable
from cdclake.errors import TableError
from cdclake.jobs.derived.derived_rows import check_keys
from cdclake.jobs.poll.changed_rows import refuse_repeated_keys
from tests.spark.events import plan_of

pytestmark = pytest.mark.spark

DERIVED = DerivedTable(
    name="totals", sql="", key=("count",), schedule="rate(1 hour)", sources=("t",)
)
[TABLE] = plan_of().tables


def test_rows_of_one_key_named_count_are_refused(spark: SparkSession) -> None:
    once = spark.sql("SELECT id AS count FROM range(3)")
    twice = spark.sql("SELECT id AS count FROM range(3) UNION ALL SELECT 2")
    polled = replace(TABLE, key=("count",))
    check_keys(DERIVED, once)
    refuse_repeated_keys(once, polled)
    with pytest.raises(TableError, match=r"2 rows of the query have the same key \(count\)"):
        check_keys(DERIVED, twice)
    with pytest.raises(TableError, match=r"2 rows of .* have the same key \(count\)"):
        refuse_repeated_keys(twice, polled)
