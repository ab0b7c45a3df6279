"""What the job `operate` asks of the stream, and what it makes of the answers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from cdclake.debezium.position import Position
from cdclake.errors import InputError
from cdclake.jobs.control.progress import GIVEN_UP, Progress
from cdclake.jobs.control.requests import REPLAY, RESYNC, outcome_name, request_name
from cdclake.jobs.operations import table_operations as operate
from tests.spark.events import MemoryStore, plan_of

TABLE = plan_of().tables[0]
REPLAYED: dict[str, Any] = {"replayed": 2, "known": 1, "refused": {"UNREADABLE_VALUE": 3}}


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(operate, "POLL_INTERVAL_S", 0.0)
    return MemoryStore()


@dataclass
class Around:
    """Source, connector and Kafka, as a resync needs them."""

    control: Any
    read: bool = False
    lost: bool = False
    known: str | None = None
    signalled: list[Any] = field(default_factory=list)
    signals: set[str] = field(default_factory=set)

    def is_read(self, table: Any) -> bool:
        return self.read

    def has_lost(self, table: Any, resume: Any) -> bool:
        return self.lost

    def newest_position(self, table: Any) -> str | None:
        return self.known

    def notified(self) -> int:
        return 41

    def signal(self, table: Any, request: str) -> None:
        """What is asked of the stream is there before the connector is asked to read."""
        self.signalled.append(self.control.read(request_name(table.name, RESYNC)).content)
        self.signals.add(request)

    def is_signalled(self, request: str) -> bool:
        return request in self.signals


def run(control: Any, verb: str, backend: Any = None) -> dict[str, Any]:
    """The line of the one table."""
    report = operate.operate(operate.TableOperations(control, backend), verb, [TABLE])
    [line] = report["tables"]
    assert report["ok"] == (line["error"] is None)
    return dict(line)


def stream_answers(
    control: Any, monkeypatch: pytest.MonkeyPatch, verb: str = REPLAY, **outcome: Any
) -> None:
    """Have the stream answer while the job waits; a stopped table flows when it is told to."""

    def answer(seconds: float) -> None:
        del seconds
        if (asked := control.read(request_name(TABLE.name, verb))) is not None:
            control.write(outcome_name(TABLE.name, verb), {**asked.content, **outcome})
        if control.read(f"resume/{TABLE.name}.json") is not None:
            Progress().save(control)

    monkeypatch.setattr("cdclake.jobs.operations.table_operations.time.sleep", answer)


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
    monkeypatch.setattr("cdclake.jobs.operations.table_operations.time.sleep", lambda seconds: None)
    monkeypatch.setitem(operate.TIMEOUTS_S, REPLAY, 0.0)
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


def killed(*_: Any) -> None:
    raise KeyboardInterrupt


SWEPT: dict[str, Any] = {"rows": 9, "ghosts": 2, "older_values": 0}


def test_a_resync_is_asked_of_the_stream_before_the_connector_reads(control, monkeypatch):
    stream_answers(control, monkeypatch, RESYNC, **SWEPT)
    backend = Around(control)
    line = run(control, RESYNC, backend)
    assert line["did"] == "read 9 rows, removed 2 that the source does not have"
    [asked] = backend.signalled
    assert (asked["notified"], asked["rejoins"]) == (41, False)
    assert backend.signals == {asked["id"]}


def test_a_resync_that_a_dead_run_asked_for_is_waited_for_and_read_once(control, monkeypatch):
    control.write(request_name(TABLE.name, RESYNC), {"id": "of-the-dead"})
    stream_answers(control, monkeypatch, RESYNC, **SWEPT)
    backend = Around(control, signals={"of-the-dead"})
    assert run(control, RESYNC, backend)["rows"] == 9
    assert backend.signalled == []


def test_a_resync_that_died_before_the_connector_was_asked_is_asked_anew(control, monkeypatch):
    """At the position of now: what was lost since is swept, too."""
    first, known = Around(control, known=str(Position(1, 5, 1, 6, 0))), str(Position(1, 9, 1, 9, 0))
    monkeypatch.setattr(first, "signal", killed)
    with pytest.raises(KeyboardInterrupt):
        run(control, RESYNC, first)
    left = control.read(request_name(TABLE.name, RESYNC)).content
    stream_answers(control, monkeypatch, RESYNC, **SWEPT)
    backend = Around(control, known=known)
    assert run(control, RESYNC, backend)["rows"] == 9
    [asked] = backend.signalled
    assert asked["id"] != left["id"]
    assert asked["position"] > left["position"]


@pytest.mark.parametrize("more", [{"rejoins": True}, {"ended": {"status": "SUCCEEDED"}}])
def test_what_another_signal_reads_is_waited_for(control, monkeypatch, more):
    control.write(request_name(TABLE.name, RESYNC), {"id": "of-another", **more})
    stream_answers(control, monkeypatch, RESYNC, **SWEPT)
    backend = Around(control)
    assert run(control, RESYNC, backend)["rows"] == 9
    assert backend.signalled == []


def test_a_table_that_is_being_read_is_not_read_twice(control):
    backend = Around(control, read=True)
    assert "still reading it" in run(control, RESYNC, backend)["error"]
    assert control.read(request_name(TABLE.name, RESYNC)) is None
    assert backend.signalled == []


def test_a_stopped_table_is_resynced_only_if_kafka_has_lost_its_gap(control, monkeypatch):
    stop_table(control)
    assert "it is stopped: too many refused" in run(control, RESYNC, Around(control))["error"]
    assert control.read(f"resume/{TABLE.name}.json") is None
    stream_answers(control, monkeypatch, RESYNC, **SWEPT)
    assert run(control, RESYNC, Around(control, lost=True))["ghosts"] == 2
    assert control.read(f"resume/{TABLE.name}.json").content == {"gap": GIVEN_UP}


def test_there_are_no_other_verbs(control):
    with pytest.raises(InputError, match="there is no verb 'x'; choose one of replay, resume, res"):
        run(control, "x")


def test_what_firehose_delivers_is_left_out_of_all_and_refused_by_name():
    streamed, delivered = TABLE, plan_of(delivery="firehose").tables[0]
    plan = replace(plan_of(), tables=(streamed, delivered))
    assert operate.streamed_tables(plan, None) == [streamed]
    assert operate.streamed_tables(plan, streamed.source) == [streamed]
    with pytest.raises(InputError, match="its delivery is firehose"):
        operate.streamed_tables(plan, f"{streamed.name},{delivered.name}")
