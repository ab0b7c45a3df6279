"""Rows that a resync does not find, and rows that change while it reads.

By default test_repairs.py sweeps what a new reading did not find.
"""

import pytest
from pyspark.sql import SparkSession

from cdclake.jobs.apply.rebuilt_state import rebuild_state
from cdclake.jobs.operations.stale_rows import count_older_values, delete_stale_rows
from tests.spark.events import Engine, plan_of
from tests.spark.test_columns import declare
from tests.spark.test_repairs import known
from tests.spark.test_replayed_values import current

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def engine(spark: SparkSession) -> Engine:
    return Engine(spark)


def test_a_large_value_unchanged_while_its_row_was_read_stays(engine: Engine) -> None:
    """Debezium leaves out a row that changes in its window; the change does not bring the value."""
    e = engine.event
    engine.run(e("c", 10, 10, id=1, v="1", big="LARGE"))
    position = known(engine)
    engine.run(e("u", 20, 20, id=1, v="2", big=...), apply_now=False)
    assert delete_stale_rows(engine.stream(), position) == 0
    engine.run(e("c", 30, 30, id=2, v="b"))
    assert engine.state() == {1: ("2", "LARGE"), 2: ("b", None)}
    rebuild_state(engine.lake, engine.table)
    assert engine.state() == {1: ("2", "LARGE"), 2: ("b", None)}


def test_a_change_that_comes_after_the_sweep_brings_its_row_back_whole(engine: Engine) -> None:
    """Kafka promises no order between the topic of the rows and that of the reading's end."""
    e = engine.event
    engine.run(e("c", 10, 10, id=1, v="1", big="LARGE"))
    assert delete_stale_rows(engine.stream(), known(engine)) == 1
    assert engine.state() == {}
    engine.run(e("u", 20, 20, id=1, v="2", big=...), apply_now=False)
    assert current(engine) == {1: ("2", "LARGE")}
    engine.run(e("c", 30, 30, id=2, v="b"), e("d", 40, 40, id=2))
    assert engine.state() == {1: ("2", "LARGE")}
    [row] = engine.lake.read(engine.table.name).where("id = 1").collect()
    assert row["cdc_toast_missing"] is None
    rebuild_state(engine.lake, engine.table)
    assert engine.state() == {1: ("2", "LARGE")}


def test_values_that_are_older_than_a_gap_are_counted(engine: Engine) -> None:
    e = engine.event
    engine.run(*(e("c", 10, 10 + n, id=n, v="1", big="LARGE") for n in range(1, 6)))
    position = known(engine)
    engine.run(
        e("u", 20, 20, id=1, v="2", big=...),  # left out of the reading
        e("r", 20, 21, id=2, v="2", big="NEW", incremental=True),
        e("u", 30, 30, id=2, v="3", big=...),
        e("u", 30, 31, id=3, v="2", big="SENT"), e("d", 30, 32, id=4),
    )  # fmt: skip
    assert delete_stale_rows(engine.stream(), position) == 1
    assert count_older_values(engine.stream(), position) == 1
    engine.run(e("u", 40, 40, id=1, v="3", big="SENT"))
    assert count_older_values(engine.stream(), position) == 0


def test_unsent_value_of_a_new_column_is_counted(spark: SparkSession) -> None:
    """The row's earlier events lack the column, whose value was not NULL."""
    key, v, big = plan_of().tables[0].columns
    engine = Engine(spark, plan_of(columns=(key, v)))
    e = engine.event
    engine.run(e("c", 10, 10, id=1, v="1"))
    position = known(engine)
    declare(engine, v, big)
    engine.run(e("u", 20, 20, id=1, v="2", big=...))
    assert engine.state() == {1: ("2", None)}
    assert count_older_values(engine.stream(), position) == 1
    engine.run(e("r", 30, 30, id=1, v="2", big="READ", incremental=True))
    assert count_older_values(engine.stream(), position) == 0


def test_a_swept_row_can_come_back_and_soft_deletes_keep_its_values(spark: SparkSession) -> None:
    engine = Engine(spark, plan_of(deletes="soft", replica_identity="full"))
    e = engine.event
    engine.run(e("c", 10, 10, id=1, v="kept", big="B"))
    assert delete_stale_rows(engine.stream(), known(engine)) == 1
    [row] = engine.lake.read(engine.table.name).collect()
    assert (row["v"], row["big"], row["cdc_deleted"]) == ("kept", "B", True)
    engine.run(e("r", 20, 20, id=1, v="here", big="C", incremental=True))
    assert engine.state() == {1: ("here", "C")}


def test_keys_that_are_gone_already_are_no_ghosts(engine: Engine) -> None:
    e = engine.event
    engine.run(e("c", 10, 10, id=1, v="truncated"), e("t", 20, 20, id=None))
    engine.run(e("c", 30, 30, id=2, v="deleted"), e("d", 40, 40, id=2))
    assert delete_stale_rows(engine.stream(), known(engine)) == 0
