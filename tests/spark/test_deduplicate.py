"""Search for events that a batch holds twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.jobs.stream.deduplicate import has_repeats
from tests.unit.postgres.tables import declared

pytestmark = pytest.mark.spark


def test_a_column_of_the_key_may_be_named_count(spark: SparkSession) -> None:
    table = replace(declared(("id", "integer"), ("count", "integer")), key=("id", "count"))
    columns = [naming.EPOCH, naming.PHASE, naming.LSN, naming.OP, *table.key]
    events = [(1, 0, 7, "r", 1, 1), (1, 0, 7, "r", 1, 2)]
    assert not has_repeats(spark.createDataFrame(events, columns), table)
    assert has_repeats(spark.createDataFrame([*events, events[0]], columns), table)
