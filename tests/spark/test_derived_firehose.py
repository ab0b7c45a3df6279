"""Derived tables over a changelog that Firehose writes."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.spark.derived import refreshes
from tests.spark.events import plan_of
from tests.spark.firehose_log import FirehoseLog
from tests.spark.test_collapse import MICROS, NOW, OLD, collapse
from tests.spark.test_firehose_log import rows

pytestmark = pytest.mark.spark

HOUR = 3_600_000_000


@pytest.mark.slow
def test_a_row_whose_delete_by_firehose_has_collapsed_leaves_the_table(
    spark: SparkSession,
) -> None:
    log = FirehoseLog(spark, plan_of())
    e, refreshed = log.engine.event, refreshes(log.engine)
    first, other, gone, new = rows(
        log, e("c", 10, 10, v="a"), e("c", 10, 11, id=2, v="b"),
        e("d", 20, 20, id=2, before={"id": 2, "v": None, "big": None}), e("u", 30, 30, v="c"),
    )  # fmt: skip
    for row in (other, gone):
        row["cdc_ingested_at"] = int(OLD.timestamp() * MICROS)
    for row in (first, new):
        row["cdc_ingested_at"] = int(NOW.timestamp() * MICROS)
    log.commit([first, other])
    assert refreshed() == [(1, "a"), (2, "b")]
    log.commit([gone])
    log.commit([new])
    log.apply(epoch=1)
    collapse(log.engine)
    assert {row["id"] for row in log.engine.log()} == {1}
    assert refreshed() == [(1, "c")]


@pytest.mark.slow
def test_what_firehose_commits_late_and_what_a_sweep_removes_are_in_the_result(
    spark: SparkSession,
) -> None:
    """Commits are counted, since rows of a later one may have been ingested earlier."""
    log = FirehoseLog(spark, plan_of())
    e, refreshed = log.engine.event, refreshes(log.engine)
    first, second, late = rows(
        log, e("c", 10, 10, v="a"), e("c", 10, 11, id=2, v="b"), e("u", 20, 20, v="c"),
    )  # fmt: skip
    late["cdc_ingested_at"] -= HOUR
    log.commit([first, second])
    assert refreshed() == [(1, "a"), (2, "b")]
    log.apply(epoch=1)
    log.commit([late])
    assert refreshed() == [(1, "c"), (2, "b")]
    [read] = rows(log, e("r", 50, 50, v="new", epoch=2), first=3)
    read["cdc_ingested_at"] += HOUR
    log.commit([read])
    assert refreshed() == [(1, "new"), (2, "b")], "the sweep removes the row without a commit"
    log.apply(epoch=2)
    assert refreshed() == [(1, "new")]
