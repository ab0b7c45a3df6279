"""A rebuild that repairs a state reaches derived tables and copies that have read wrong rows."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from cdclake.jobs.apply.rebuilt_state import applied_through, rebuild_state
from tests.spark.derived import refreshes
from tests.spark.events import Engine, plan_of
from tests.spark.firehose_log import FirehoseLog
from tests.spark.hudi_jvm import hudi_jvm, in_hudi_jvm, needs_hudi
from tests.spark.published_table import PublishedTable
from tests.spark.test_firehose_log import rows

__all__ = ["hudi_jvm"]
pytestmark = pytest.mark.spark


def falsify(engine: Engine) -> None:
    """Change a row of the state without an event."""
    name = engine.lake.qualified(engine.table.name)
    engine.spark.sql(f"UPDATE {name} SET v = 'wrong' WHERE id = 1")


@pytest.mark.slow
def test_a_derived_table_is_repaired_by_a_rebuild(spark: SparkSession) -> None:
    engine = Engine(spark, plan_of())
    e, refreshed = engine.event, refreshes(engine)
    engine.run(e("c", 10, 10, v="a"), e("c", 11, 11, id=2, v="b"))
    falsify(engine)
    assert refreshed() == [(1, "wrong"), (2, "b")]
    rebuild_state(engine.lake, engine.table)
    assert refreshed() == [(1, "a"), (2, "b")]
    rebuilt = applied_through(engine.lake, engine.table).rebuilt
    engine.run(e("u", 20, 20, id=2, v="c"))
    assert refreshed() == [(1, "a"), (2, "c")]
    engine.run(e("t", 30, 30, id=None))
    engine.run(e("c", 40, 40, v="d"))
    assert applied_through(engine.lake, engine.table).rebuilt == rebuilt != ""


def test_a_derived_table_of_delivered_rows_is_repaired_by_a_rebuild(spark: SparkSession) -> None:
    log = FirehoseLog(spark, plan_of())
    e, refreshed = log.engine.event, refreshes(log.engine)
    log.commit(rows(log, e("c", 10, 10, v="a"), e("c", 11, 11, id=2, v="b")))
    log.apply()
    falsify(log.engine)
    assert refreshed() == [(1, "wrong"), (2, "b")]
    log.rebuild()
    assert refreshed() == [(1, "a"), (2, "b")]
    rebuilt = applied_through(log.engine.lake, log.table).rebuilt
    log.commit(rows(log, e("u", 20, 20, id=2, v="c"), first=2))
    log.apply()
    assert applied_through(log.engine.lake, log.table).rebuilt == rebuilt != ""


@pytest.mark.slow
@needs_hudi
@in_hudi_jvm
def test_a_copy_is_repaired_by_a_rebuild(spark: SparkSession) -> None:
    table = PublishedTable(spark)
    e = table.event
    table.engine.run(
        e("c", 10, 10, v="a", big="Peru"), e("c", 10, 11, id=2, v="b", big="Kenya"),
    )  # fmt: skip
    falsify(table.engine)
    assert table.publish() == 2
    assert [row[:2] for row in table.rows()] == [(1, "wrong"), (2, "b")]
    rebuild_state(table.engine.lake, table.engine.table)
    assert table.publish() == 2
    assert table.rows() == table.rust() == table.expected()
    assert table.rows()[0][:2] == (1, "a")
    assert table.publish() == 0
