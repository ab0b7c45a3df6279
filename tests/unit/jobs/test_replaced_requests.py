"""Requests that are written while an earlier one is answered: none is lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.control_objects import (
    FORGET,
    PROGRESS,
    REPLAY,
    ForgetRequest,
    ResumeRequest,
    outcome_name,
    request_name,
    resume_name,
)
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.requests import read_outcome, take_resumes
from cdclake.jobs.control.table_life import Resuming
from cdclake.jobs.operations import executor, requested_erasure
from cdclake.jobs.operations.executor import OperationExecutor
from cdclake.jobs.operations.replay import Replayed
from cdclake.stream_requests import request_replay
from tests.spark.events import MemoryStore, plan_of

PLAN = plan_of()
[TABLE] = PLAN.tables
NO_EVENTS: Any = None
KEYS: Any = object()  # of an erasure that a test replaces


class BusyStore(MemoryStore):
    """Store with a command that writes its request, once, as soon as one object is written."""

    def __init__(self, trigger: str, name: str, request: dict[str, Any]) -> None:
        super().__init__()
        self._trigger, self._later = trigger, [(name, request)]

    def write(self, name: str, content: dict[str, Any]) -> None:
        super().write(name, content)
        self._meanwhile(name)

    def write_if(self, name: str, content: dict[str, Any], etag: str | None) -> str | None:
        written = super().write_if(name, content, etag)
        self._meanwhile(name)
        return written

    def _meanwhile(self, name: str) -> None:
        if name == self._trigger and self._later:
            super().write(*self._later.pop())


def test_the_stream_answers_a_request_that_has_replaced_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request, outcome = request_name(TABLE.name, REPLAY), outcome_name(TABLE.name, REPLAY)
    control: Any = BusyStore(outcome, request, {"id": "second"})
    control.write(request, {"id": "first"})
    replayed = Replayed(replayed=0, known=0, withheld=0, refused={})
    monkeypatch.setattr(executor, "replay_quarantine", lambda *_, **__: replayed)
    stream: Any = SimpleNamespace(table=TABLE)
    progress = Progress()
    for answered, left in (("first", {"id": "second"}), ("second", None)):
        OperationExecutor(control, {}).run(PLAN, NO_EVENTS, {}, progress, lambda _: stream)
        assert control.read(outcome).content["id"] == answered
        assert getattr(control.read(request), "content", None) == left


def test_replay_that_is_requested_again_meanwhile_is_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The plan of the batch may be older than the second command."""
    control: Any = MemoryStore()
    first = request_replay(control, TABLE.name)
    commands = [lambda: request_replay(control, TABLE.name)]
    found, progress = [5, 0], Progress()

    def replay(*_: Any, **__: Any) -> Replayed:
        if commands:
            assert commands.pop()() == first
        return Replayed(replayed=0, known=0, withheld=0, refused={"RULE": found.pop(0)})

    monkeypatch.setattr(executor, "replay_quarantine", replay)
    stream: Any = SimpleNamespace(table=TABLE)
    for outcome in (None, {"RULE": 0}):
        OperationExecutor(control, {}).run(PLAN, NO_EVENTS, {}, progress, lambda _: stream)
        answered = read_outcome(control, TABLE.name, REPLAY, first)
        assert (answered and answered["refused"]) == outcome
    assert control.read(request_name(TABLE.name, REPLAY)) is None


def test_a_job_answers_an_erasure_that_has_replaced_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request, outcome = request_name(TABLE.name, FORGET), outcome_name(TABLE.name, FORGET)
    second = ForgetRequest("second", ("b",)).to_json()
    control: Any = BusyStore(outcome, request, second)
    control.write(request, ForgetRequest("first", ("a",)).to_json())
    monkeypatch.setattr(requested_erasure, "erase_table_rows", lambda *_: {})
    job: Any = SimpleNamespace(control=control)
    for answered, left in (("first", second), ("second", None)):
        requested_erasure.answer_request(job, TABLE, lambda _: KEYS)
        assert control.read(outcome).content["id"] == answered
        assert getattr(control.read(request), "content", None) == left


def test_a_resume_that_has_replaced_another_is_taken_by_the_next_batch() -> None:
    name, second = resume_name(TABLE.name), ResumeRequest(skip_gap=True)
    control: Any = BusyStore(PROGRESS, name, second.to_json())
    control.write(name, ResumeRequest().to_json())
    progress = Progress()
    place = progress.table(TABLE.name)
    place.stop("Kafka has lost records")
    take_resumes(control, progress)
    assert control.read(name) is not None
    take_resumes(control, progress)
    assert control.read(name) is None
    assert isinstance(place.life, Resuming) and place.life.skips_gap
