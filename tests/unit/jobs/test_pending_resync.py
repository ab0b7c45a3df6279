"""Resyncs that are pending when another one is requested: joined, or replaced."""

from __future__ import annotations

from typing import Any

import pytest

from cdclake.control_objects import RESYNC, request_name
from cdclake.debezium.position import Position
from tests.spark.events import MemoryStore
from tests.unit.jobs.test_operate import SWEPT, TABLE, MemoryBackend, run, stream_answers

REQUESTED: dict[str, Any] = {"position": str(Position(1, 5, 1, 6, 0)), "notified": 7}


@pytest.fixture
def control() -> Any:
    return MemoryStore()


def killed(*_: Any) -> None:
    raise KeyboardInterrupt


def test_a_resync_that_a_dead_run_asked_for_is_waited_for_and_read_once(control, monkeypatch):
    control.write(request_name(TABLE.name, RESYNC), {**REQUESTED, "id": "of-the-dead"})
    stream_answers(control, monkeypatch, RESYNC, **SWEPT)
    backend = MemoryBackend(control, signals={"of-the-dead"})
    assert run(control, RESYNC, backend)["rows"] == 9
    assert backend.signalled == []


def test_a_resync_that_died_before_the_connector_was_asked_is_asked_anew(control, monkeypatch):
    """At the position of now: what was lost since is swept, too."""
    first, known = (
        MemoryBackend(control, known=str(Position(1, 5, 1, 6, 0))),
        str(Position(1, 9, 1, 9, 0)),
    )
    monkeypatch.setattr(first, "signal_snapshot", killed)
    with pytest.raises(KeyboardInterrupt):
        run(control, RESYNC, first)
    left = control.read(request_name(TABLE.name, RESYNC)).content
    stream_answers(control, monkeypatch, RESYNC, **SWEPT)
    backend = MemoryBackend(control, known=known)
    assert run(control, RESYNC, backend)["rows"] == 9
    [asked] = backend.signalled
    assert asked["id"] != left["id"]
    assert asked["position"] > left["position"]


def test_what_has_been_read_is_waited_for(control, monkeypatch):
    more = {"ended": {"status": "SUCCEEDED"}}
    control.write(request_name(TABLE.name, RESYNC), {**REQUESTED, "id": "of-another", **more})
    stream_answers(control, monkeypatch, RESYNC, **SWEPT)
    backend = MemoryBackend(control)
    assert run(control, RESYNC, backend)["rows"] == 9
    assert backend.signalled == []


@pytest.mark.parametrize(
    ("first", "being_read", "joined"),
    [(7, False, True), (8, False, False), (8, True, True)],
)
def test_resync_whose_end_expired_is_replaced(control, monkeypatch, first, being_read, joined):
    """Kafka has deleted notifications since the request, which is of offset 7."""
    control.write(request_name(TABLE.name, RESYNC), {**REQUESTED, "id": "of-the-dead"})
    stream_answers(control, monkeypatch, RESYNC, **SWEPT)
    backend = MemoryBackend(control, signals={"of-the-dead"}, first=first, read=being_read)
    assert run(control, RESYNC, backend)["rows"] == 9
    assert (backend.signalled == []) == joined
