"""A replay restores no row that a later complete read of the table did not find."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdclake.debezium.position import reached, snapshot_start
from cdclake.jobs.apply.rebuilt_state import rebuild_state
from cdclake.jobs.operations import replay
from cdclake.jobs.operations.replay import replay_quarantine
from cdclake.jobs.stream.table_stream import Replaced
from tests.spark.events import Engine, plan_of
from tests.spark.test_repairs import NUMBERS, log_of, store_null_instead
from tests.spark.test_settled_refusals import Resync

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def young(monkeypatch: pytest.MonkeyPatch) -> None:
    """The events here are of 2023."""
    monkeypatch.setattr(replay, "replay_age", lambda *_: None)


def resynced(spark: SparkSession, *, rejoins: bool = False, **table: Any) -> Engine:
    """A table after a resync that found row 1 alone: the events of rows 2 and 4 were refused."""
    resync = Resync(spark, **table)
    engine, e = resync.engine, resync.engine.event
    engine.place = resync.place
    engine.run(e("c", 21, 21, id=2, v="NaN", big="gone"), e("c", 40, 40, id=4, v="NaN"))
    store_null_instead(engine)
    engine.run(resync.row())
    offsets = {} if rejoins else {0: engine.next_offset}
    answer = resync.answer(position=str(reached(1, 25)), offsets=offsets, rejoins=rejoins)
    assert (answer["ghosts"], answer["released"]) == (0, 0)
    return engine


def live(engine: Engine) -> dict[int, str | None]:
    return {key: big for key, (_, big) in engine.state().items()}


def ops(engine: Engine, key: int) -> list[str]:
    return [row["cdc_op"] for row in engine.log() if row["id"] == key]


def test_row_that_a_resync_did_not_find_stays_deleted(spark: SparkSession) -> None:
    engine = resynced(spark)
    done = replay_quarantine(engine.stream(), epoch=1)
    assert (done.replayed, done.known, done.refused) == (3, 0, {})
    assert live(engine) == {1: "now", 4: None}
    assert [ops(engine, key) for key in (1, 2, 4)] == [["c", "u", "r"], ["c", "d"], ["c"]]
    assert engine.quarantined() == []
    log = log_of(engine)
    assert replay_quarantine(engine.stream(), epoch=1).released == 0
    assert log_of(engine) == log
    rebuild_state(engine.lake, engine.table)
    assert live(engine) == {1: "now", 4: None}


def test_crash_before_the_release_restores_no_row(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here after a rejoin, which settles no refused events."""
    engine = resynced(spark, rejoins=True)
    with monkeypatch.context() as patched:
        patched.setattr(replay, "_release", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            replay_quarantine(engine.stream(), epoch=1)
    assert live(engine) == {1: "now", 4: None}
    log = log_of(engine)
    done = replay_quarantine(engine.stream(), epoch=1)
    assert (done.replayed, done.known, log_of(engine) == log) == (0, 3, True)


@pytest.mark.slow
def test_soft_deletes_keep_the_values_of_a_replayed_row(spark: SparkSession) -> None:
    engine = resynced(spark, deletes="soft")
    replay_quarantine(engine.stream(), epoch=1)
    [gone] = engine.lake.read(engine.table.name).where("cdc_deleted").collect()
    assert (gone["id"], gone["big"], live(engine)) == (2, "gone", {1: "now", 4: None})


def test_row_of_an_earlier_epoch_stays_deleted_until_it_is_read(spark: SparkSession) -> None:
    """The first row of the new epoch's snapshot is at the snapshot's own position."""
    engine = Engine(spark, plan_of(columns=NUMBERS))
    e = engine.event
    engine.run(e("c", 10, 10, id=1, v="NaN"), e("c", 11, 11, id=2, v="NaN"))
    engine.place.note_complete_read(str(snapshot_start(2, 50)))
    store_null_instead(engine)
    assert replay_quarantine(engine.stream(), epoch=2).replayed == 2
    assert (live(engine), ops(engine, 1), ops(engine, 2)) == ({}, ["c", "d"], ["c", "d"])
    row = e("r", 0, 50, id=1, v="1.00", big="read", epoch=2)
    engine.run(row, offset=0, epoch=2, replaced=Replaced())
    assert live(engine) == {1: "read"}
