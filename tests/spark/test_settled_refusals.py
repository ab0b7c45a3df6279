"""A complete resync lets the refused events go that it has settled, and no others."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdclake.control_objects import RESYNC, ResyncRequest, ScanEnd, outcome_name, request_name
from cdclake.debezium.position import just_after
from cdclake.iceberg.collapse import replay_age
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.operations import replay
from cdclake.jobs.operations.executor import OperationExecutor
from cdclake.jobs.operations.replay import release_refused
from cdclake.plan import Column
from tests.spark.events import RECORD, Engine, MemoryStore, plan_of
from tests.spark.test_repairs import NUMBERS
from tests.spark.test_withheld import RULES

pytestmark = pytest.mark.spark


class Resync:
    """A table with a resync that was requested when the stream had read two events."""

    def __init__(self, spark: SparkSession, **table: Any) -> None:
        self.engine = Engine(spark, plan_of(**{"columns": NUMBERS, **table}))
        self.store, self.progress = MemoryStore(), Progress(epoch=1)
        self.place = self.progress.table(self.engine.table.name)
        e = self.engine.event
        self.engine.run(e("c", 10, 10, v="1.00", big="old"), e("u", 20, 20, v="NaN", big="new"))
        self.position = str(just_after(str(self.engine.log()[-1]["cdc_position"])))
        self.place.offsets, self.place.topic_id, self.place.quarantined = {0: 2}, "t", 1

    def answer(self, rows: int = 1, **request: Any) -> dict[str, Any]:
        """The stream's answer, when it has read all of the connector's `rows`."""
        name, end = self.engine.table.name, self.engine.next_offset
        asked = ResyncRequest(
            id="i", position=self.position, notified=0, offsets={0: 2}, topic_id="t",
            ended=ScanEnd(status="SUCCEEDED", rows=rows, offsets={0: end}),
        )  # fmt: skip
        self.place.offsets = {0: end}
        self.store.write(request_name(name, RESYNC), replace(asked, **request).to_json())
        operations = OperationExecutor(self.store, {})  # type: ignore[arg-type]
        nothing, stream = self.engine.spark.createDataFrame([], RECORD), self.engine.stream()
        operations.run(self.engine.plan, nothing, {}, self.progress, lambda _: stream)
        return dict(self.store.stored[outcome_name(name, RESYNC)].content)

    def row(self) -> dict[str, Any]:
        """The row as the connector reads it."""
        return self.engine.event("r", 30, 30, v="2.00", big="now", incremental=True)

    def kept(self) -> list[int]:
        return [row["offset"] for row in self.engine.quarantined()]


@pytest.fixture(autouse=True)
def young(monkeypatch: pytest.MonkeyPatch) -> None:
    """The events here are of 2023."""
    monkeypatch.setattr(replay, "replay_age", lambda *_: None)


@pytest.fixture
def resync(spark: SparkSession) -> Resync:
    return Resync(spark)


def test_an_event_from_before_the_request_goes(resync: Resync) -> None:
    engine = resync.engine
    engine.run(resync.row())
    assert (resync.answer()["released"], resync.kept(), resync.place.quarantined) == (1, [], 0)
    assert {key: big for key, (_, big) in engine.state().items()} == {1: "now"}
    resync.place.quarantined = 1  # a stream that was killed before it saved the progress repeats it
    assert (resync.answer()["released"], resync.place.quarantined) == (0, 0)


@pytest.mark.parametrize(
    ("columns", "kept"),
    [(NUMBERS, [1, 3]), pytest.param(NUMBERS[:2], [3], marks=pytest.mark.slow)],
)
def test_an_event_that_was_refused_since_stays(
    spark: SparkSession, columns: tuple[Column, ...], kept: list[int]
) -> None:
    """Its replay may need a large value, if the table has any, that only the earlier one has."""
    resync = Resync(spark, columns=columns)
    resync.engine.run(resync.row(), resync.engine.event("u", 40, 40, v="NaN", big="last"))
    assert (resync.answer()["released"], resync.kept()) == (2 - len(kept), kept)


@pytest.mark.parametrize(
    "request_of", [{"offsets": {}}, {"topic_id": "another"}, {"rows": 2}], ids=str
)
def test_all_stay_if_the_resync_may_not_have_settled_them(
    resync: Resync, request_of: dict[str, Any]
) -> None:
    """It notes no offsets, or those of another topic, or is incomplete."""
    resync.engine.run(resync.row())
    assert not resync.answer(**request_of).get("released")
    assert (resync.kept(), resync.place.quarantined) == ([1], 1)


def test_all_stay_if_deleted_rows_keep_their_values(spark: SparkSession) -> None:
    """The resync reads no deleted row, and the event may have its last values."""
    resync = Resync(spark, deletes="soft")
    resync.engine.run(resync.row())
    assert (resync.answer()["released"], resync.kept()) == (0, [1])


@pytest.mark.slow
def test_an_event_that_is_too_old_goes(resync: Resync, monkeypatch: pytest.MonkeyPatch) -> None:
    resync.engine.declare(replace(resync.engine.plan, not_representable="null"))
    monkeypatch.setattr(replay, "replay_age", replay_age)
    resync.engine.run(resync.row())
    assert (resync.answer()["released"], resync.kept()) == (1, [])


def test_all_stay_if_a_row_kept_a_large_value_from_before(resync: Resync) -> None:
    """It changed during the resync, and the refused event has a newer value than the lake."""
    resync.engine.run(resync.engine.event("u", 30, 30, v="2.00", big=...))
    assert (resync.answer()["released"], resync.kept()) == (0, [1])


def test_an_event_that_a_replay_accepts_stays(resync: Resync) -> None:
    """The changelog lacks it, and the replay that `status` names helps."""
    engine = resync.engine
    engine.run((b'{"id": 7}', b"{rubbish"), resync.row())
    engine.declare(replace(engine.plan, not_representable="null"))
    assert resync.answer(offsets={0: 3})["released"] == 1
    assert resync.kept() == [1]


@pytest.mark.slow
def test_an_event_that_a_rule_withholds_stays(spark: SparkSession) -> None:
    engine = Engine(spark, plan_of(checks=RULES))
    engine.run(engine.event("c", 10, 10, v="odd", big="A"), (b'{"id": 7}', b"{rubbish"))
    assert release_refused(engine.stream(), {0: 2}) == 1
    assert [row["offset"] for row in engine.quarantined()] == [0]
    assert json.loads(engine.quarantined()[0]["key"]) == {"id": 1}
    assert release_refused(engine.stream(), {0: 2}) == 0
