"""What the job `operate` asks of the stream, and what it makes of the answers."""

from __future__ import annotations

from typing import Any

import pytest

from cdclake.errors import InputError
from glue_jobs import operate
from glue_jobs.ingest.progress import Progress
from glue_jobs.ingest.repairs import REPLAY, outcome_name, request_name
from tests.spark.events import MemoryStore, plan_of

TABLE = plan_of().tables[0]
REPLAYED = {"replayed": 2, "known": 1, "refused": {"UNREADABLE_VALUE": 3}}


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(operate, "POLL_S", 0.0)
    return MemoryStore()


def run(control: Any, verb: str) -> dict[str, Any]:
    """The line of the one table."""
    report = operate.operate(control, verb, [TABLE])
    [line] = report["tables"]
    assert report["ok"] == (line["error"] is None)
    return dict(line)


def stream_answers(control: Any, monkeypatch: pytest.MonkeyPatch, **outcome: Any) -> None:
    """Have the stream answer while the job waits."""

    def answer(seconds: float) -> None:
        del seconds
        request = control.read(request_name(TABLE.name, REPLAY)).content
        control.write(outcome_name(TABLE.name, REPLAY), {**request, **outcome})

    monkeypatch.setattr("glue_jobs.operate.time.sleep", answer)


def stop_table(control: Any) -> None:
    progress = Progress()
    progress.table(TABLE.name).stop("too many refused")
    progress.save(control)


def test_a_replay_is_asked_for_and_waited_for(control, monkeypatch):
    stream_answers(control, monkeypatch, **REPLAYED)
    line = run(control, "replay")
    assert line["did"] == "replayed 2, 1 were in the log already, 3 still refused"
    assert line["refused"] == {"UNREADABLE_VALUE": 3}


def test_a_request_that_a_dead_run_left_is_waited_for(control, monkeypatch):
    control.write(request_name(TABLE.name, REPLAY), {"id": "of-the-dead"})
    control.write(outcome_name(TABLE.name, REPLAY), {"id": "an older one", **REPLAYED})
    stream_answers(control, monkeypatch, **REPLAYED)
    assert run(control, "replay")["replayed"] == 2
    assert control.read(outcome_name(TABLE.name, REPLAY)).content["id"] == "of-the-dead"


def test_a_replay_that_fails_or_never_ends_is_an_error(control, monkeypatch):
    stream_answers(control, monkeypatch, error="no place")
    assert "no place" in run(control, "replay")["error"]
    control.delete(outcome_name(TABLE.name, REPLAY))
    monkeypatch.setattr("glue_jobs.operate.time.sleep", lambda seconds: None)
    monkeypatch.setattr(operate, "REPLAY_S", 0.0)
    assert "was not done within 0 s" in run(control, "replay")["error"]


def test_a_stopped_table_is_not_replayed_and_is_resumed(control):
    stop_table(control)
    assert "it is stopped: too many refused" in run(control, "replay")["error"]
    assert control.read(request_name(TABLE.name, REPLAY)) is None
    assert run(control, "resume")["did"] == "asked to rejoin"
    assert control.read(f"resume/{TABLE.name}.json").content == {}


def test_a_table_that_flows_has_nothing_to_resume(control):
    assert run(control, "resume")["did"] == "flows"
    assert list(control.names("resume")) == []


def test_there_are_no_other_verbs(control):
    with pytest.raises(InputError, match="there is no verb 'resync'; choose one of replay, resume"):
        run(control, "resync")
