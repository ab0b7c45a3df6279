"""The sequence of replay, resync and resume, as the job `operate` runs it over a backend."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from cdclake.control_objects import FORGET, REPLAY, RESYNC, outcome_name, request_name
from cdclake.debezium.position import (
    POLL_PHASE,
    SNAPSHOT_PHASE,
    STREAM_PHASE,
    Position,
    history_part,
)
from cdclake.erasures import KeyHash
from cdclake.errors import ComponentFailed, InputError
from cdclake.jobs.control.erasure_register import register_erasure
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.operations.operate_job import operate
from cdclake.jobs.operations.table_operations import TableOperations, streamed_tables
from tests.spark.events import MemoryStore, plan_of

TABLE = plan_of().tables[0]
REPLAYED: dict[str, Any] = {"replayed": 2, "known": 1, "refused": {"UNREADABLE_VALUE": 3}}


@pytest.fixture
def control() -> Any:
    return MemoryStore()


@dataclass
class MemoryBackend:
    """Backend without source, connector and Kafka."""

    control: Any
    timeouts_s: dict[str, float] = field(default_factory=lambda: {REPLAY: 60.0, RESYNC: 60.0})
    poll_interval_s: float = 0.0
    paused: bool = False
    started: int = 0
    read: bool = False
    lost: bool = False
    known: str | None = None
    lsn: int = 0
    first: int = 0
    asked: list[str] = field(default_factory=list)  # of the source, in this order
    refusal: InputError | None = None
    signalled: list[Any] = field(default_factory=list)
    signals: set[str] = field(default_factory=set)

    def exclusive(self) -> Any:
        return nullcontext()

    def check_running(self) -> None:
        """Everything runs."""

    def check_health(self) -> None:
        """Everything runs."""

    def wake_stream(self) -> None:
        """A test wakes the stream itself."""

    def check_resumable(self) -> None:
        """Nothing is in the way."""

    def is_paused(self) -> bool:
        return self.paused

    def start_stream(self) -> None:
        self.started += 1

    def check_snapshot(self, table: Any) -> None:
        if self.refusal is not None:
            raise self.refusal

    def epoch(self) -> int:
        return Progress.load(self.control).epoch

    def tables_being_read(self) -> frozenset[str]:
        return frozenset([TABLE.source] if self.read else [])

    def has_lost_events(self, table: Any, place: Any) -> bool:
        return self.lost

    def reading(self, table: Any) -> Any:
        return lambda: None

    def newest_position(self, table: Any) -> str | None:
        return self.known

    def next_notification(self) -> int:
        return 41

    def first_notification(self) -> int:
        return self.first

    def read_relations(self) -> Any:
        self.asked.append("relations")
        return "relations"

    def settled_lsn(self) -> int:
        self.asked.append("lsn")
        return self.lsn

    def signal_snapshot(self, table: Any, request: str, source: Any) -> None:
        """Note the request, which is written before the signal."""
        self.asked.append(f"signal, recorded: {source}")
        self.signalled.append(self.control.read(request_name(table.name, RESYNC)).content)
        self.signals.add(request)

    def is_signalled(self, request: str) -> bool:
        return request in self.signals


def run(control: Any, verb: str, backend: Any = None) -> dict[str, Any]:
    """The line of the one table."""
    backend = MemoryBackend(control) if backend is None else backend
    report = operate(TableOperations(backend), verb, [TABLE])
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
            control.write("progress.json", Progress().to_stored())

    monkeypatch.setattr("cdclake.jobs.operations.table_operations.time.sleep", answer)


def stop_table(control: Any) -> None:
    progress = Progress()
    progress.table(TABLE.name).stop("too many refused")
    progress.save(control)


def test_a_replay_is_asked_for_and_waited_for(control, monkeypatch):
    stream_answers(control, monkeypatch, **REPLAYED)
    line = run(control, "replay")
    assert line["did"] == "replayed 2, 1 were already in the changelog, 3 still refused"
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
    impatient = MemoryBackend(control, timeouts_s={REPLAY: 0.0})
    assert "is still pending after 0 s" in run(control, "replay", impatient)["error"]


def test_a_stopped_table_is_not_replayed_and_is_resumed(control):
    stop_table(control)
    assert "it is stopped: too many refused" in run(control, "replay")["error"]
    assert control.read(request_name(TABLE.name, REPLAY)) is None
    assert run(control, "resume")["did"] == "asked to rejoin"
    assert control.read(f"resume/{TABLE.name}.json").content == {}


def test_a_table_that_flows_has_nothing_to_resume(control):
    assert run(control, "resume")["did"] == "flows"
    assert list(control.names("resume")) == []


def test_resume_starts_a_paused_stream_after_its_requests(control):
    stop_table(control)
    backend = MemoryBackend(control, paused=True)
    answers = TableOperations(backend).resume([TABLE, replace(TABLE, name="another")])
    assert answers == {TABLE.name: {"did": "asked to rejoin"}, "another": {"did": "resumed"}}
    assert backend.started == 1


def test_replay_skips_stopped_tables_if_told_to(control):
    stop_table(control)
    answers = TableOperations(MemoryBackend(control)).replay([TABLE], skip_stopped=True)
    assert answers[TABLE.name]["did"].startswith("nothing: table ")
    assert control.stored.keys() == {"progress.json"}


def test_replay_raises_a_tables_error_after_all_tables_have_ended(control, monkeypatch):
    others = [replace(TABLE, name=name) for name in ("another", "third")]

    def answer(seconds: float) -> None:
        del seconds
        outcomes = {TABLE.name: {"error": "no place"}, "another": REPLAYED, "third": REPLAYED}
        for name, outcome in outcomes.items():
            asked = control.read(request_name(name, REPLAY)).content
            control.write(outcome_name(name, REPLAY), {**asked, **outcome})

    monkeypatch.setattr("cdclake.jobs.operations.table_operations.time.sleep", answer)
    operations = TableOperations(MemoryBackend(control))
    with pytest.raises(ComponentFailed, match="no place"):
        operations.replay([TABLE, *others])
    assert operations.replay(others).keys() == {"another", "third"}


def test_resync_without_wait_returns_after_its_signal(control):
    backend = MemoryBackend(control)
    assert TableOperations(backend).resync(TABLE, wait=False)["did"].startswith("requested")
    assert len(backend.signals) == 1


SWEPT: dict[str, Any] = {"rows": 9, "ghosts": 2, "older_values": 0}


def test_a_resync_that_would_not_read_all_rows_changes_nothing(control):
    refusal = InputError("row-level security would hide rows", "run ALTER ROLE")
    backend = MemoryBackend(control, lost=True, refusal=refusal)
    stop_table(control)
    assert run(control, "resync", backend)["error"] == str(refusal)
    assert (backend.signalled, list(control.names("resume/"))) == ([], [])
    assert control.read(request_name(TABLE.name, RESYNC)) is None


def test_a_resync_is_asked_of_the_stream_before_the_connector_reads(control, monkeypatch):
    stream_answers(control, monkeypatch, RESYNC, **SWEPT)
    backend = MemoryBackend(control)
    line = run(control, RESYNC, backend)
    assert line["did"] == "read 9 rows, removed 2 that the source lacks"
    [asked] = backend.signalled
    assert (asked["notified"], asked["rejoins"]) == (41, False)
    assert backend.signals == {asked["id"]}


@pytest.mark.parametrize("phase", [SNAPSHOT_PHASE, STREAM_PHASE, POLL_PHASE])
def test_a_resync_is_above_all_rows_and_below_what_it_reads(control, phase):
    """A polled row is above every change that was committed before it was read."""
    known = str(Position(1, 50, phase, 50, 9))
    backend = MemoryBackend(control, known=known)
    TableOperations(backend).resync(TABLE, wait=False)
    [asked] = backend.signalled
    assert history_part(known) < history_part(asked["position"])
    assert asked["position"] < str(Position(1, 51, SNAPSHOT_PHASE, 51, 0))


@pytest.mark.parametrize("known", [None, str(Position(1, 20, STREAM_PHASE, 30, 9))])
def test_a_resync_is_above_events_that_the_changelog_lacks(control, known):
    """A row that has vanished since is not taken for one that was read."""
    Progress(epoch=1).save(control)
    backend = MemoryBackend(control, known=known, lsn=60)
    TableOperations(backend).resync(TABLE, wait=False)
    [asked] = backend.signalled
    assert str(Position(1, 50, STREAM_PHASE, 55, 7)) < asked["position"]
    assert asked["position"] < str(Position(1, 61, SNAPSHOT_PHASE, 61, 0))


def test_a_resync_notes_what_the_stream_had_read_before_its_position(control, monkeypatch):
    """Events that it reads meanwhile may be of transactions that the snapshot does not see."""
    progress = Progress()
    place = progress.table(TABLE.name)
    place.offsets, place.topic_id = {0: 7}, "t"
    progress.save(control)
    backend = MemoryBackend(control)

    def settled_lsn() -> int:
        place.offsets = {0: 9}
        progress.save(control)
        return 0

    monkeypatch.setattr(backend, "settled_lsn", settled_lsn)
    TableOperations(backend).resync(TABLE, wait=False)
    [asked] = backend.signalled
    assert (asked["offsets"], asked["topic_id"]) == ({"0": 7}, "t")


def test_a_resync_records_the_relations_from_before_its_position(control):
    """A change of the table after that is still reported."""
    backend = MemoryBackend(control)
    TableOperations(backend).resync(TABLE, wait=False)
    assert backend.asked == ["relations", "lsn", "signal, recorded: relations"]


@pytest.mark.parametrize("signalled", [True, False])
def test_a_rejoin_is_joined_only_if_up_has_signalled_it(control, monkeypatch, signalled):
    """`up` may have died before the signal."""
    backend = MemoryBackend(control, lsn=9)
    known = {TABLE.name: str(Position(1, 5, 1, 6, 0))}
    [request] = TableOperations(backend).request_rejoins(known).values()
    left = control.read(request_name(TABLE.name, RESYNC)).content
    assert (left["id"], left["rejoins"], left["notified"]) == (request, True, 41)
    assert Position.parse(left["position"]) > Position.parse(known[TABLE.name])
    assert backend.asked == ["lsn"]
    backend.signals |= {request} if signalled else set()
    stream_answers(control, monkeypatch, RESYNC, **SWEPT)
    assert run(control, RESYNC, backend)["rows"] == 9
    assert [asked["id"] == request for asked in backend.signalled] == ([] if signalled else [False])


def test_a_table_that_is_being_read_is_not_read_twice(control):
    backend = MemoryBackend(control, read=True)
    assert "still reading it" in run(control, RESYNC, backend)["error"]
    assert control.read(request_name(TABLE.name, RESYNC)) is None
    assert backend.signalled == []


@pytest.mark.parametrize(
    ("registered", "awaited"), [(["left", "new"], True), (["new"], False), ([], False)]
)
def test_an_erasure_awaits_an_earlier_one_of_registered_keys(
    control, monkeypatch, registered, awaited
):
    """One that a failed poll left is of no register: the stream would never answer it."""
    name, answered = request_name(TABLE.name, FORGET), []
    control.write(name, {"id": "of-the-dead", "hashes": ["left"]})
    if registered:
        register_erasure(control, KeyHash.of(TABLE.name, "salt"), registered, "p")

    def answer(seconds: float) -> None:
        del seconds
        answered.append(control.read(name).content)
        control.write(outcome_name(TABLE.name, FORGET), {**answered[-1], "events": 1})
        control.delete(name)

    monkeypatch.setattr("cdclake.jobs.operations.table_operations.time.sleep", answer)
    backend = MemoryBackend(control, timeouts_s={FORGET: 60.0})
    TableOperations(backend).await_earlier_erasure(TABLE)
    assert [asked["hashes"] for asked in answered] == [["left"]] * awaited


def test_a_stopped_table_is_resynced_only_if_kafka_has_lost_its_gap(control, monkeypatch):
    stop_table(control)
    assert (
        "it is stopped: too many refused" in run(control, RESYNC, MemoryBackend(control))["error"]
    )
    assert control.read(f"resume/{TABLE.name}.json") is None
    stream_answers(control, monkeypatch, RESYNC, **SWEPT)
    assert run(control, RESYNC, MemoryBackend(control, lost=True))["ghosts"] == 2
    assert control.read(f"resume/{TABLE.name}.json").content == {"gap": "given up"}


def test_there_are_no_other_verbs(control):
    with pytest.raises(InputError, match="unknown verb 'x'; choose one of replay, resume, res"):
        run(control, "x")


def test_what_firehose_delivers_is_left_out_of_all_and_refused_by_name():
    streamed, delivered = TABLE, plan_of(delivery="firehose").tables[0]
    plan = replace(plan_of(), tables=(streamed, delivered))
    assert streamed_tables(plan) == [streamed]
    assert streamed_tables(plan, [streamed.source]) == [streamed]
    with pytest.raises(InputError, match="its delivery is firehose"):
        streamed_tables(plan, [streamed.name, delivered.name])
