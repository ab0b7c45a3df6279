"""The replay of several tables by the job `operate`: one wait for all, an answer for each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdclake.control_objects import REPLAY, outcome_name, request_name
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.operations.operate_job import operate
from cdclake.jobs.operations.table_operations import TableOperations
from tests.spark.events import MemoryStore
from tests.unit.jobs.test_operate import REPLAYED, TABLE, MemoryBackend


@pytest.fixture
def control() -> Any:
    return MemoryStore()


def test_replay_writes_all_requests_before_it_waits(control, monkeypatch):
    """A scheduled stream answers what it finds in one run; the failure of one is its own."""
    tables = [replace(TABLE, name=name) for name in ("a", "b", "c")]
    progress = Progress()
    progress.table("c").stop("too many refused")
    progress.save(control)
    outcomes = {"a": {"error": "no place"}, "b": REPLAYED}

    def answer(seconds: float) -> None:
        del seconds
        for name, outcome in outcomes.items():
            asked = control.read(request_name(name, REPLAY)).content
            control.write(outcome_name(name, REPLAY), {**asked, **outcome})

    monkeypatch.setattr("cdclake.jobs.operations.table_operations.time.sleep", answer)
    report = operate(TableOperations(MemoryBackend(control)), REPLAY, tables, named=False)
    [failed, replayed, stopped] = report["tables"]
    assert (report["ok"], replayed["replayed"], replayed["error"]) == (False, 2, None)
    assert "no place" in failed["error"]
    assert (stopped["error"], stopped["did"][:8]) == (None, "nothing:")
    assert control.read(request_name("c", REPLAY)) is None


def test_replays_of_all_tables_have_one_deadline(control):
    tables = [replace(TABLE, name=name) for name in ("a", "b")]
    control.write(request_name("b", REPLAY), {"id": "i"})
    control.write(outcome_name("b", REPLAY), {"id": "i", **REPLAYED})
    impatient = MemoryBackend(control, timeouts_s={REPLAY: -1.0})
    report = operate(TableOperations(impatient), REPLAY, tables)
    [late, replayed] = report["tables"]
    assert "replay of a is still pending" in late["error"]
    assert (replayed["replayed"], replayed["error"]) == (2, None)


def test_each_answer_gives_the_next_table_the_whole_timeout(control, monkeypatch):
    """One batch carries the requests out one after the other."""
    names = ["a", "b", "c"]
    clock, waiting = [0.0], list(names)

    def answer_one(seconds: float) -> None:
        del seconds
        clock[0] += 20
        name = waiting.pop(0)
        asked = control.read(request_name(name, REPLAY)).content
        control.write(outcome_name(name, REPLAY), {**asked, **REPLAYED})

    where = "cdclake.jobs.operations.table_operations.time"
    monkeypatch.setattr(f"{where}.sleep", answer_one)
    monkeypatch.setattr(f"{where}.monotonic", lambda: clock[0])
    backend = MemoryBackend(control, timeouts_s={REPLAY: 30.0})
    report = operate(
        TableOperations(backend), REPLAY, [replace(TABLE, name=name) for name in names]
    )
    assert [line["error"] for line in report["tables"]] == [None, None, None]
