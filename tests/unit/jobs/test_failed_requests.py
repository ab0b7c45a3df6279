"""Requests that fail, or cannot be parsed: each is answered, and none fails the batch of all."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from botocore.exceptions import ConnectTimeoutError

from cdclake.control_objects import (
    FORGET,
    REPLAY,
    RESYNC,
    ResumeRequest,
    ResyncRequest,
    failed_result,
    outcome_content,
    outcome_name,
    request_name,
)
from cdclake.debezium.position import epoch_start, snapshot_start
from cdclake.errors import ComponentFailed, ServiceUnavailable
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.requests import read_outcome
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.operations import executor, replay
from cdclake.jobs.operations.executor import OperationExecutor
from cdclake.jobs.operations.replay import Replayed, note_released
from tests.spark.events import MemoryStore, plan_of

NO_EVENTS: Any = None
NO_STREAM: Any = None


@pytest.mark.parametrize(
    ("verb", "content", "reason"),
    [
        (RESYNC, {"id": "a", "notified": 4}, "the request has no 'position'"),
        (REPLAY, {}, "the request has no 'id'"),
    ],
)
def test_malformed_request_is_answered_and_removed(
    verb: str, content: dict[str, Any], reason: str
) -> None:
    control: Any = MemoryStore()
    plan = plan_of()
    table = plan.tables[0].name
    control.write(request_name(table, verb), content)

    def no_batch(_: Any) -> Any:
        raise AssertionError("no batch is needed for it")

    events: Any = None
    OperationExecutor(control, {}).run(plan, events, {}, Progress(), no_batch)
    stored = control.read(outcome_name(table, verb))
    assert stored.content == {"id": content.get("id", ""), "error": reason}
    assert control.read(request_name(table, verb)) is None


def requested(control: Any, verb: str, content: dict[str, Any]) -> tuple[Callable[[], None], str]:
    """Request it of a streaming table; return what a batch does with requests, and the name."""
    plan, progress = plan_of(), Progress()
    [table] = plan.tables
    stream: Any = SimpleNamespace(table=table)
    control.write(request_name(table.name, verb), content)
    operations = OperationExecutor(control, {})
    return lambda: operations.run(plan, NO_EVENTS, {}, progress, lambda _: stream), table.name


@pytest.mark.parametrize(
    "error", [ServiceUnavailable("Slow down", "wait"), ConnectTimeoutError(endpoint_url="s3")]
)
def test_a_request_that_a_service_fails_is_carried_out_by_a_later_batch(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    control: Any = MemoryStore()
    run, table = requested(control, REPLAY, {"id": "r1"})
    answers = [error, Replayed(replayed=2, known=0, withheld=0, refused={})]

    def replay(*_: Any, **__: Any) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(executor, "replay_quarantine", replay)
    run()
    assert control.read(outcome_name(table, REPLAY)) is None
    assert control.read(request_name(table, REPLAY)) is not None
    run()
    assert control.read(outcome_name(table, REPLAY)).content["replayed"] == 2
    assert control.read(request_name(table, REPLAY)) is None


def test_a_request_ends_with_the_error_that_waiting_does_not_help(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    control: Any = MemoryStore()
    run, table = requested(control, REPLAY, {"id": "r1"})
    monkeypatch.setattr(executor, "replay_quarantine", raising(ValueError("no such column")))
    run()
    assert control.read(outcome_name(table, REPLAY)).content["error"] == "no such column"
    assert control.read(request_name(table, REPLAY)) is None


def test_a_batch_fails_if_it_alone_has_the_end_of_a_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    control: Any = MemoryStore()
    content = ResyncRequest(id="r1", position=str(epoch_start(1)), notified=0).to_json()
    run, table = requested(control, RESYNC, content)
    lost = ServiceUnavailable("Slow down", "wait")
    monkeypatch.setattr(OperationExecutor, "_with_end", raising(lost))
    with pytest.raises(ServiceUnavailable):
        run()
    assert control.read(request_name(table, RESYNC)) is not None


def raising(error: Exception) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> NoReturn:
        raise error

    return fail


@pytest.mark.parametrize("answered_by", ["stream", "poll_tables"])
def test_a_failed_request_names_the_component_whose_log_tells_why(answered_by: str) -> None:
    control: Any = MemoryStore()
    failed = outcome_content("r1", failed_result(ValueError("no such column")))
    control.write(outcome_name("orders", FORGET), failed)
    with pytest.raises(ComponentFailed, match="no such column") as caught:
        read_outcome(control, "orders", FORGET, "r1", by=answered_by)
    assert caught.value.component == answered_by
    assert f"see the log of {answered_by}" in caught.value.remedy
    assert read_outcome(control, "orders", FORGET, "another") is None


def test_resync_that_a_new_epoch_replaces_ends_with_its_snapshot() -> None:
    """Until the table has read that snapshot, its rows are still missing."""
    control: Any = MemoryStore()
    plan = plan_of()
    [table] = plan.tables
    progress = Progress(epoch=2)
    place = progress.table(table.name)
    place.stop("Kafka has lost records")
    place.ask_to_resume(ResumeRequest(skip_gap=True))
    place.flow()
    place.warning, place.missed_below = "older values", str(epoch_start(1))
    request = ResyncRequest(id="r", position=str(epoch_start(1)), notified=0)
    control.write(request_name(table.name, RESYNC), request.to_json())
    stream: Any = SimpleNamespace(table=table)

    def run() -> Any:
        OperationExecutor(control, {}).run(plan, NO_EVENTS, {}, progress, lambda _: stream)
        return read_outcome(control, table.name, RESYNC, "r")

    assert run() is None
    assert place.last_error == place.incomplete is not None
    place.swept = str(snapshot_start(2, 50))
    assert run()["epoch"] == 2
    assert not (place.last_error or place.missed_below)


@pytest.mark.parametrize(("released", "held", "left"), [(2, 1, 1), (0, 1, 1), (0, 5, 3), (3, 5, 0)])
def test_repeated_operation_counts_refused_events_that_are_held(
    monkeypatch: pytest.MonkeyPatch, released: int, held: int, left: int
) -> None:
    """One that was killed before it saved the progress has released events already."""
    quarantine = SimpleNamespace(where=lambda _: SimpleNamespace(count=lambda: held))
    monkeypatch.setattr(replay, "_quarantine", lambda _: quarantine)
    place = TableProgress(quarantined=3)
    note_released(place, NO_STREAM, released)
    assert place.quarantined == left
