"""Reasons that `verify` gives when the lake does not catch up."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cdclake.control_objects import PAUSE, PROGRESS
from cdclake.debezium.position import epoch_start
from cdclake.errors import CdcError, ComponentFailed, NotRunning
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.verify import catch_up
from cdclake.jobs.verify.catch_up import CatchUp
from cdclake.jobs.verify.deployed_verify import find_obstacle
from cdclake.jobs.verify.not_arrived import NotArrived
from cdclake.jobs.verify.poll_wait import with_polls
from cdclake.plan import Table
from cdclake.polling import Polling
from tests.spark.events import MemoryStore
from tests.unit.verify.lakes import make_plan, make_table

PAUSED = NotRunning("the stream is paused", "run `cdclake resume`, then this again")
FIREHOSE = make_table(delivery="firehose")


@pytest.fixture
def arrival(monkeypatch: pytest.MonkeyPatch) -> CatchUp:
    """A lake that lacks three records and gets none; Kafka has all."""
    monkeypatch.setattr(CatchUp, "_await_kafka", lambda *_: None)
    monkeypatch.setattr(catch_up, "_POLL_INTERVAL_S", 0.01)
    monkeypatch.setattr(catch_up, "_OBSTACLE_INTERVAL_S", 0.01)
    return CatchUp(
        plan=make_plan(make_table()),
        dsn="",
        ends=lambda _: {"p.public.t": {0: 3}},
        progress=Progress,
        arrived=lambda _: {"t": {0: 0}},
        wait_s=0.1,
    )


def test_obstacle_is_named_at_the_deadline(arrival: CatchUp) -> None:
    with pytest.raises(NotRunning, match="the stream is paused"):
        replace(arrival, obstacle=lambda: PAUSED).wait([make_table()], lambda: None)


def test_lasting_obstacle_ends_the_wait(arrival: CatchUp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catch_up, "_MAX_OBSTACLE_S", 0.05)
    begun = time.monotonic()
    with pytest.raises(NotRunning):
        replace(arrival, obstacle=lambda: PAUSED, wait_s=60.0).wait([make_table()], lambda: None)
    assert time.monotonic() - begun < 10


def test_passing_obstacle_is_waited_out(arrival: CatchUp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catch_up, "_MAX_OBSTACLE_S", 0.05)
    found: list[CdcError | None] = [PAUSED]
    with pytest.raises(ComponentFailed, match="3 records"):
        replace(arrival, obstacle=lambda: found.pop() if found else None, wait_s=0.2).wait(
            [make_table()], lambda: None
        )
    assert not found


def test_a_table_that_is_held_back_is_waited_for_until_it_streams(arrival: CatchUp) -> None:
    """S3 did not answer when its state was updated; all its records had arrived."""
    held = Progress(tables={"t": TableProgress()})
    held.tables["t"].hold("S3 does not answer", time.time())
    found = [held, held, Progress()]
    waiting = replace(
        arrival,
        progress=lambda: found.pop(0) if found[1:] else found[0],
        arrived=lambda _: {"t": {0: 3}},
        wait_s=60.0,
    )
    assert waiting.wait([make_table()], lambda: None) == {}
    assert len(found) == 1


def test_a_table_that_stays_held_back_is_named_at_the_deadline(arrival: CatchUp) -> None:
    held = Progress(tables={"t": TableProgress()})
    held.tables["t"].hold("S3 does not answer", time.time())
    begun = time.monotonic()
    stays = replace(arrival, progress=lambda: held, arrived=lambda _: {"t": {0: 3}})
    assert "S3 does not answer" in stays.wait([make_table()], lambda: None)["t"].reason
    assert time.monotonic() - begun >= arrival.wait_s


def test_a_table_that_has_failed_three_times_is_not_waited_for(arrival: CatchUp) -> None:
    held = Progress(tables={"t": TableProgress()})
    for _ in range(3):
        held.tables["t"].hold("S3 does not answer", time.time())
    fails = replace(arrival, progress=lambda: held, wait_s=60.0)
    begun = time.monotonic()
    assert "3 times" in fails.wait([make_table()], lambda: None)["t"].reason
    assert time.monotonic() - begun < 10


def test_a_table_that_streams_again_is_not_held_back(arrival: CatchUp) -> None:
    streams = Progress(tables={"t": TableProgress(failures=1)})
    begun = time.monotonic()
    again = replace(arrival, progress=lambda: streams, arrived=lambda _: {"t": {0: 3}}, wait_s=60.0)
    assert again.wait([make_table()], lambda: None) == {}
    assert time.monotonic() - begun < 10


def test_without_obstacle_the_missing_records_are_named(arrival: CatchUp) -> None:
    with pytest.raises(ComponentFailed, match="3 records of topic") as late:
        arrival.wait([make_table()], lambda: None)
    assert "redrive" not in late.value.remedy


def test_failed_delivery_is_named_as_a_cause(arrival: CatchUp) -> None:
    late = arrival.wait([FIREHOSE], lambda: None)["t"]
    assert "3 records of topic" in late.reason
    assert "cdclake redrive --dry-run" in late.reason
    assert not late.is_stopped


def test_late_delivery_does_not_hold_up_polled_tables(arrival: CatchUp) -> None:
    city = make_table(
        name="city", delivery="poll", polling=Polling(by="v", every="rate(1 day)", deletes="none")
    )
    polled: list[str] = []

    def poll(tables: Collection[Table], _: Callable[[], None]) -> Mapping[str, NotArrived]:
        polled.extend(table.name for table in tables)
        return {}

    found = with_polls(arrival.wait, poll)([FIREHOSE, city], lambda: None)
    assert found.keys() == {"t"}
    assert polled == ["city"]


def test_late_delivery_does_not_hold_up_next_to_a_stopped_table(arrival: CatchUp) -> None:
    stopped = Progress()
    stopped.table("t").stop("columns differ")
    late = make_table(name="late", topic="p.late", delivery="firehose")
    waiting = replace(
        arrival,
        ends=lambda topics: {topic: {0: 3} for topic in topics},
        progress=lambda: stopped,
    )
    found = waiting.wait([make_table(), late], lambda: None)
    assert "columns differ" in found["t"].reason
    assert "3 records of topic p.late" in found["late"].reason
    assert [each.is_stopped for each in (found["t"], found["late"])] == [True, False]


def test_table_that_is_late_in_a_later_round_is_given_up(arrival: CatchUp) -> None:
    found = {"late": {0: 3}, "given_up": {0: 0}}
    late = make_table(name="late", topic="p.late", delivery="firehose")
    given_up = replace(late, name="given_up", topic="p.given_up")
    waiting = replace(
        arrival,
        ends=lambda topics: {topic: {0: 3} for topic in topics},
        arrived=lambda _: found,
    )
    assert waiting.wait([late, given_up], lambda: None).keys() == {"given_up"}
    found["late"] = {0: 2}
    assert waiting.wait([late, given_up], lambda: None).keys() == {"late", "given_up"}


def test_late_delivery_does_not_hold_up_the_other_tables(arrival: CatchUp) -> None:
    late = make_table(name="late", topic="p.late", delivery="firehose")
    other = replace(late, name="other", topic="p.other")
    streamed = make_table()
    found = {"late": {0: 1}, "other": {0: 3}, "t": {0: 3}}
    waiting = replace(
        arrival,
        ends=lambda topics: {topic: {0: 3} for topic in topics},
        arrived=lambda _: found,
    )
    reasons = waiting.wait([late, other, streamed], lambda: None)
    assert reasons.keys() == {"late"}
    assert "2 records of topic p.late have not arrived; a record that" in reasons["late"].reason
    begun = time.monotonic()
    assert replace(waiting, wait_s=60.0).wait([late], lambda: None) == reasons  # in a later round
    assert time.monotonic() - begun < 10
    found["t"] = {0: 0}
    with pytest.raises(ComponentFailed, match=r"public\.t: 3 records"):
        replace(waiting, given_up={}).wait([late, other, streamed], lambda: None)


def test_rows_of_the_epoch_before_are_waited_for(arrival: CatchUp) -> None:
    arrived = replace(arrival, arrived=lambda _: {"t": {0: 3}})
    assert arrived.wait([make_table()], lambda: None) == {}
    with pytest.raises(ComponentFailed, match="the snapshot of epoch 2 is not complete"):
        replace(arrived, epoch=2).wait([make_table()], lambda: None)
    begun = Progress(epoch=2)
    with pytest.raises(ComponentFailed, match="rows of before are still shown"):
        replace(arrived, progress=lambda: begun).wait([make_table()], lambda: None)
    begun.complete_snapshot = str(epoch_start(2))  # a table without progress was not there before
    begun.table("t")
    assert replace(arrived, progress=lambda: begun).wait([make_table()], lambda: None) == {}


NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def control_of(age: timedelta | None) -> Any:
    """Control objects of a stream whose progress has this age; None: it has written none."""
    control: Any = MemoryStore()
    if age is not None:
        written = Progress(written_at=(NOW - age).isoformat())
        control.write(PROGRESS, written.to_stored())
    return control


def test_silent_stream_is_an_obstacle() -> None:
    plan, late = make_plan(make_table()), control_of(timedelta(minutes=16))
    assert find_obstacle(plan, control_of(timedelta(minutes=14)), NOW) is None
    found = find_obstacle(plan, late, NOW)
    assert found is not None and "since 2026-01-01T11:44:00+00:00" in found.message
    assert find_obstacle(plan, control_of(None), NOW) is None
    assert find_obstacle(make_plan(FIREHOSE), late, NOW) is None


def test_scheduled_stream_may_be_silent_between_its_runs() -> None:
    scheduled = replace(make_plan(make_table()), mode="scheduled")
    assert find_obstacle(scheduled, control_of(timedelta(hours=1)), NOW) is None


@pytest.mark.parametrize("mode", ["always_on", "scheduled"])
def test_pause_is_an_obstacle_whose_remedy_is_resume(mode: Any) -> None:
    control = control_of(timedelta(hours=1))
    control.write(PAUSE, {"since": "2026-01-01T10:00:00+00:00"})
    found = find_obstacle(replace(make_plan(make_table()), mode=mode), control, NOW)
    assert isinstance(found, NotRunning)
    assert (found.message, found.remedy) == (PAUSED.message, PAUSED.remedy)
    assert find_obstacle(make_plan(FIREHOSE), control, NOW) is None
