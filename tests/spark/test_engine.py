"""The engine on real Spark and Iceberg: what the catalogue of cases does not say."""

import itertools
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdclake.debezium.changelog_rows import LogRows, Place
from cdclake.debezium.refusals import RefusedEvent
from cdclake.jobs.apply.rebuilt_state import rebuild_state
from cdclake.plan import Column
from tests.spark.events import Engine, plan_of

pytestmark = pytest.mark.spark


@pytest.fixture
def engine(spark):
    return Engine(spark)


def test_a_number_that_its_type_cannot_hold_is_refused_not_rounded(spark) -> None:
    columns = (
        Column(source="id", name="id", type="bigint"),
        Column(source="v", name="v", type="numeric(5,2)"),
        Column(source="big", name="big", type="text"),
    )
    engine = Engine(spark, plan_of(columns=columns))
    e = engine.event
    outcome = engine.run(
        e("c", 10, 10, id=1, v="123.45"), e("c", 10, 11, id=2, v="1.239"),
        e("c", 10, 12, id=3, v="NAN"), e("c", 10, 13, id=4, v="12345.00"),
    )  # fmt: skip
    assert (outcome.appended, outcome.quarantined) == (1, 3)
    assert str(engine.state()[1][0]) == "123.45"


@pytest.mark.slow
def test_soft_deletes_keep_the_last_values(spark) -> None:
    engine = Engine(spark, plan_of(deletes="soft"))
    e = engine.event
    engine.run(e("c", 10, 10, v="a", big="B"), e("d", 20, 20))
    for _ in ("applied", "rebuilt from the changelog"):
        [row] = engine.lake.read(engine.table.name).collect()
        assert (row["v"], row["big"], row["cdc_deleted"]) == ("a", "B", True)
        rebuild_state(engine.lake, engine.table)
    engine.run(e("c", 30, 30, v="again"))
    assert engine.state() == {1: ("again", None)}


@pytest.mark.parametrize(
    "cuts",
    [
        (),
        (2,),
        pytest.param((3,), marks=pytest.mark.slow),
        pytest.param((1, 2, 3, 4, 5, 6), marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_a_truncate_under_soft_deletes_marks_the_same_rows_however_batches_are_cut(
    spark: SparkSession, cuts: tuple[int, ...]
) -> None:
    engine = Engine(spark, plan_of(deletes="soft"))
    e = engine.event
    sent = [
        e("c", 10, 10, v="a", big="A"), e("c", 10, 11, id=2, v="b"), e("t", 20, 20, id=None),
        e("c", 30, 30, id=2, v="again"), e("c", 30, 31, id=3, v="c"),
        e("u", 12, 12, v="late", big=...), e("c", 12, 13, id=4, v="late"),
    ]  # fmt: skip
    for first, end in itertools.pairwise((0, *cuts, len(sent))):
        engine.run(*sent[first:end])
    kept = [(1, "late", "A", True), (2, "again", None, False), (3, "c", None, False)]
    kept.append((4, "late", None, True))

    def whole() -> list[tuple[Any, ...]]:
        rows = engine.lake.read(engine.table.name).orderBy("id")
        return [tuple(row) for row in rows.select("id", "v", "big", "cdc_deleted").collect()]

    assert whole() == kept
    rebuild_state(engine.lake, engine.table)
    assert whole() == kept


@pytest.mark.slow
def test_a_state_that_was_left_behind_catches_up_from_the_log(engine: Engine) -> None:
    e = engine.event
    engine.run(e("c", 10, 10, v="a"))
    engine.run(e("u", 20, 20, v="b"), apply_now=False)
    engine.run(e("c", 30, 30, id=2, v="c"), apply_now=False)
    assert not engine.is_applied
    assert engine.state() == {1: ("a", None)}
    engine.run(e("u", 40, 40, v="d"))
    assert engine.state() == {1: ("d", None), 2: ("c", None)}


def test_another_job_holding_the_table_delays_its_state_not_its_log(engine: Engine) -> None:
    e = engine.event
    with engine.leases.hold(engine.table.name):
        engine.run(e("c", 10, 10, v="a"))
        assert not engine.is_applied
    assert len(engine.log()) == 1
    assert engine.state() == {}
    engine.apply()
    assert engine.state() == {1: ("a", None)}


def test_columns_may_be_named_like_anything_of_ours_that_is_not_reserved(spark) -> None:
    names = ("id", "v", "big", "key", "value", "headers", "topic", "partition", "newest", "held")
    columns = tuple(
        Column(source=name, name=name, type="bigint" if name == "id" else "text") for name in names
    )
    engine = Engine(spark, plan_of(columns=columns))
    created = engine.event("c", 10, 10, v="a", big="b")
    created["value"]["after"] |= {name: name for name in names[3:]}
    engine.run(created)
    updated = engine.event("u", 20, 20, v="c", big=...)
    updated["value"]["after"] |= dict.fromkeys(names[3:])
    engine.run(updated)
    [row] = engine.lake.read(engine.table.name).collect()
    assert (row["v"], row["big"], row["value"]) == ("c", "b", None)


@pytest.mark.parametrize("deletes", ["hard", "soft"])
def test_a_delete_whose_last_values_the_state_cannot_hold(
    spark: SparkSession, deletes: str
) -> None:
    """They come with it under replica identity full; where none of them stays, it is applied."""
    columns = (Column(source="id", name="id", type="bigint"),
               Column(source="v", name="v", type="numeric(5,2)"))  # fmt: skip
    plan = plan_of(columns=columns, replica_identity="full", deletes=deletes)
    engine = Engine(spark, plan)
    last = {"id": 1, "v": "NaN"}
    engine.run(
        engine.event("c", 10, 10, v="1.00"), engine.event("u", 20, 20, v="NaN"),
        engine.event("d", 30, 30, before=last),
    )  # fmt: skip
    is_applied = deletes == "hard"
    live = engine.lake.read(engine.table.name).where("NOT cdc_deleted").count()
    assert (live, len(engine.quarantined())) == ((0, 1) if is_applied else (1, 2))
    made = LogRows(engine.table, engine.plan)
    delete = engine.event("d", 30, 30, before=last)["value"]
    if is_applied:
        assert made.row(delete, Place(0, 0), 0)["v"] == "NaN" == engine.log()[-1]["v"]
    else:
        with pytest.raises(RefusedEvent, match="NOT_REPRESENTABLE"):
            made.row(delete, Place(0, 0), 0)


@pytest.mark.slow
def test_what_is_sent_again_around_a_new_epoch_stands_in_the_log_once(engine: Engine) -> None:
    """The log's marks are of one epoch, and a partition may lag behind the others."""
    e = engine.event
    old, new = e("u", 20, 20, v="b"), e("r", 5, 5, v="c", epoch=2)
    engine.run(e("c", 10, 10, v="a"), old)
    engine.run(old, new, epoch=2)
    engine.run(old, epoch=2)
    assert [row["cdc_lsn"] for row in engine.log() if row["cdc_op"] != "t"] == [10, 20, 5]
    assert engine.state() == {1: ("c", None)}


def test_a_key_that_becomes_minus_zero_is_the_same_row(spark: SparkSession) -> None:
    """Debezium sends a delete of 0.0 and a creation of -0.0, which PostgreSQL holds for equal."""
    columns = (
        Column(source="id", name="id", type="double precision"),
        Column(source="v", name="v", type="text"),
    )
    engine = Engine(spark, plan_of(columns=columns))
    e = engine.event
    engine.run(e("c", 10, 10, id=0.0, v="a"))  # type: ignore[arg-type]
    engine.run(e("d", 20, 20, id=0.0), e("c", 20, 21, id=-0.0, v="b"))  # type: ignore[arg-type]
    engine.run(e("u", 30, 30, id=-0.0, v="c"))  # type: ignore[arg-type]
    rows = engine.lake.read(engine.table.name).collect()
    assert [(row["id"], row["v"], row["cdc_deleted"]) for row in rows] == [(0.0, "c", False)]
