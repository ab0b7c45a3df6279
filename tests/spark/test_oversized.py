"""Events that were too large for Kafka, and batches that are too large for memory."""

from __future__ import annotations

import json
from typing import NoReturn

import pytest
from pyspark.sql import SparkSession

from cdclake.control_objects import outcome_name, request_name
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.operations import executor
from cdclake.jobs.stream.partition_summary import RefusedReasons
from cdclake.jobs.stream.state_round import StateRound
from tests.spark.events import Engine, MemoryStore, plan_of
from tests.spark.fed_stream import Stream
from tests.spark.test_repairs import asked, known, notification

pytestmark = pytest.mark.spark

REASON = "OVERSIZED_RECORD: public.t, key id=1, LSN {}: 20 bytes exceed Kafka's limit of 10"
SCAN = {"status": "SUCCEEDED", "total_rows_scanned": "1"}


@pytest.fixture
def engine(spark: SparkSession) -> Engine:
    return Engine(spark, plan_of())


@pytest.fixture
def stream(spark: SparkSession) -> Stream:
    return Stream(spark)


def marker(engine: Engine, op: str, prev: int, lsn: int) -> tuple[bytes, bytes]:
    """Key and value of what the connector sends in place of an event that is too large."""
    event = engine.event(op, prev, lsn)
    told = {"op": op, "bytes": 20, "reason": REASON.format(lsn), "key": event["key"]}
    value = {"op": "oversized", "cdc_oversized": told, "cdc_epoch": "1"}
    value["source"] = event["value"]["source"]
    return json.dumps(event["key"]).encode(), json.dumps(value).encode()


def test_a_marker_is_no_row_and_stands_in_the_quarantine_with_its_reason(engine: Engine) -> None:
    e = engine.event
    done = engine.run(
        e("c", 10, 10, v="a"), marker(engine, "u", 20, 20), e("c", 30, 30, id=2, v="b")
    )
    assert (done.quarantined, done.reasons) == (1, RefusedReasons(oversized=REASON.format(20)))
    assert done.drift is not None and not done.drift.stop_offsets
    assert engine.state() == {1: ("a", None), 2: ("b", None)}
    assert [row["reason"] for row in engine.quarantined()] == [REASON.format(20)]
    assert engine.run(e("u", 40, 40, v="c")).reasons == RefusedReasons()


@pytest.mark.parametrize("policy", ["quarantine", "stop"])
def test_the_policy_decides_whether_the_table_stops(spark: SparkSession, policy: str) -> None:
    stream = Stream(spark, oversized_records=policy)
    one, two = stream.one, stream.two
    stream.run(
        *stream.records((one, marker(one, "c", 10, 10)), (two, two.event("c", 11, 11, v="b")))
    )
    mine = stream.progress().table(one.table.name)
    assert mine.is_streaming is (policy == "quarantine")
    assert mine.offsets == {0: 1}  # a stopped table goes on after the marker
    for words in ("key id=1", f"cdclake resync {one.table.name}", "exclude"):
        assert words in str(mine.oversized)
    assert stream.progress().table(two.table.name).is_streaming
    assert two.state() == {1: ("b", None)}


@pytest.mark.parametrize("policy", ["quarantine", "stop"])
def test_a_crash_after_the_commit_does_not_forget_the_marker(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    """The stamp of the changelog has passed it, so the batch that runs again does not decode it."""
    stream = Stream(spark, oversized_records=policy)
    one = stream.one
    records = stream.records((one, one.event("c", 10, 10)), (one, marker(one, "u", 20, 20)))
    with monkeypatch.context() as patched, pytest.raises(MemoryError):
        patched.setattr(StateRound, "run", killed)
        stream.run(*records)
    assert len(one.log()) == 1
    stream.start()
    stream.run(*records)
    mine = stream.progress().table(one.table.name)
    assert mine.is_streaming is (policy == "quarantine")
    assert "key id=1" in str(mine.oversized)


def killed(*_: object) -> NoReturn:
    raise MemoryError("killed")


@pytest.mark.slow
def test_a_resync_that_meets_the_large_row_again_deletes_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = engine.table.name
    engine.run(engine.event("c", 10, 10, v="old"), marker(engine, "u", 20, 20))
    store, progress = MemoryStore(), Progress(epoch=1)
    mine = progress.table(name)
    mine.offsets, mine.quarantined, mine.oversized = {0: 2}, 1, "named"
    monkeypatch.setattr(executor, "read_gap", lambda *_: (None, {0: (2, 3)}))
    end = notification(engine, "TABLE_SCAN_COMPLETED", **SCAN)

    position = known(engine)
    engine.run(marker(engine, "r", 30, 30))
    mine.offsets = {0: 3}
    store.write(request_name(name, "resync"), {"id": "i", "position": position, "notified": 0})
    asked(engine, store, progress, end)
    error = store.stored[outcome_name(name, "resync")].content["error"]
    assert "key id=1, LSN 30" in error
    assert engine.state() == {1: ("old", None)}
    assert (mine.oversized, len(engine.quarantined())) == ("named", 2)

    # The column is excluded: no event of the source, and the old markers are above the request.
    store.write(request_name(name, "resync"), {"id": "j", "position": position, "notified": 0})
    engine.run(engine.event("r", 50, 50, v="small", incremental=True))
    mine.offsets, mine.quarantined = {0: 4}, 2
    asked(engine, store, progress, end)
    outcome = store.stored[outcome_name(name, "resync")].content
    assert "error" not in outcome, outcome
    assert not mine.oversized
    assert (mine.quarantined, engine.quarantined()) == (0, [])
    assert engine.state() == {1: ("small", None)}
