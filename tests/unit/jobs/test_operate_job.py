"""The job `operate`: its report, and what its backend opens for which verb."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from cdclake import naming
from cdclake.control_objects import PAUSE, REPLAY, REQUESTS, RESYNC, resume_name
from cdclake.errors import InputError
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.control.topic_state import TopicState
from cdclake.jobs.operations import deployed_backend, operate_job
from cdclake.jobs.operations.deployed_backend import DeployedBackend
from cdclake.jobs.operations.table_operations import TableOperations
from cdclake.jobs.stream.topic_check import KafkaTopics
from tests.spark.events import MemoryStore, plan_of

PLAN = plan_of()
[TABLE] = PLAN.tables
ARGUMENTS = {"JOB_NAME": "operate", "plan": "s3://b/plan.json", "control": "s3://b/c"}


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> Any:
    store = MemoryStore()
    monkeypatch.setattr(deployed_backend, "ObjectStore", lambda _: store)
    monkeypatch.setattr(operate_job, "PlanWatcher", lambda *_: Watcher())
    monkeypatch.setattr(operate_job, "ObjectStore", lambda _: store)
    return store


class Watcher:
    """Watcher of a plan that never changes."""

    def read(self) -> Any:
        return PLAN


def test_run_writes_the_report_and_opens_nothing_for_resume(control: Any) -> None:
    progress = Progress()
    progress.table(TABLE.name).stop("why")
    progress.save(control)
    assert operate_job.run({**ARGUMENTS, "verb": "resume", "run": "r"}) == 0
    line = {"table": TABLE.name, "error": None, "did": "asked to rejoin"}
    assert control.read(naming.report_name("r")).content == {"ok": True, "tables": [line]}


def test_resume_includes_a_stopped_table_of_firehose(
    control: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is stopped if the stream could not create it."""
    delivered = plan_of(delivery="firehose")
    monkeypatch.setattr(Watcher, "read", lambda _: delivered)
    name, progress = delivered.tables[0].name, Progress()
    progress.table(name).stop("why")
    progress.save(control)
    arguments = {**ARGUMENTS, "verb": "resume", "tables": name, "run": "r"}
    assert operate_job.run(arguments) == 0
    assert control.read(resume_name(name)).content == {}


def test_run_reports_a_stopped_table_as_an_error(control: Any) -> None:
    progress = Progress()
    progress.table(TABLE.name).stop("why")
    progress.save(control)
    assert operate_job.run({**ARGUMENTS, "verb": "replay", "tables": TABLE.name}) == 1
    [line] = control.read(naming.report_name(naming.OPERATE_JOB)).content["tables"]
    assert line["did"] == f"nothing: {line['error']}"


def test_resync_of_expired_tables_leaves_the_others_alone(
    control: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: list[Any] = []

    def resync(_: TableOperations, table: Any) -> dict[str, Any]:
        chosen.append(table)
        return {"did": "read"}

    monkeypatch.setattr(TableOperations, "resync", resync)
    assert operate_job.run({**ARGUMENTS, "verb": "resync", "expired": "true", "run": "r"}) == 0
    assert control.read(naming.report_name("r")).content == {"ok": True, "tables": []}
    progress = Progress()
    progress.table(TABLE.name).incomplete = "rows are missing"
    progress.save(control)
    assert operate_job.run({**ARGUMENTS, "verb": "resync", "expired": "true"}) == 0
    assert chosen == [TABLE]


@pytest.mark.parametrize("more", [{}, {"expired": "false"}])
def test_resync_requires_tables(control: Any, more: dict[str, str]) -> None:
    with pytest.raises(InputError, match="--tables is required for resync"):
        operate_job.run({**ARGUMENTS, "verb": "resync", **more})


@pytest.mark.parametrize("verb", ["replay", "resync"])
def test_a_paused_stream_gets_no_request(control: Any, verb: str) -> None:
    """The job would wait for the outcome until its timeout."""
    Progress().save(control)
    control.write(PAUSE, {"since": "2026-11-28T10:00:00+00:00"})
    assert operate_job.run({**ARGUMENTS, "verb": verb, "tables": TABLE.name, "run": "r"}) == 1
    [line] = control.read(naming.report_name("r")).content["tables"]
    assert line["error"] == "the stream is paused; run `cdclake resume`, then this again"
    assert not control.names(REQUESTS)


def test_a_replay_waits_longer_for_the_next_run_of_a_scheduled_stream(control: Any) -> None:
    with ExitStack() as resources:
        always = DeployedBackend(PLAN, ARGUMENTS, resources).timeouts_s
        scheduled = DeployedBackend(replace(PLAN, mode="scheduled"), ARGUMENTS, resources)
        assert always[REPLAY] < 3600 < scheduled.timeouts_s[REPLAY]
        assert scheduled.timeouts_s[RESYNC] == always[RESYNC]


def test_source_is_opened_once_and_closed(control: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    @contextmanager
    def dsn(_: Any) -> Iterator[str]:
        calls.append("open")
        yield "dsn"
        calls.append("close")

    monkeypatch.setattr(deployed_backend, "deployed_dsn", dsn)
    monkeypatch.setattr(deployed_backend, "is_signalled", lambda dsn, id: (dsn, id) == ("dsn", "i"))
    with ExitStack() as resources:
        backend = DeployedBackend(PLAN, ARGUMENTS, resources)
        assert calls == []
        assert (backend.is_signalled("i"), backend.is_signalled("other")) == (True, False)
        assert calls == ["open"]
    assert calls == ["open", "close"]


def test_expired_events_are_those_before_the_first_offset(
    control: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deployed_backend, "open_session", lambda _: None)
    monkeypatch.setattr(deployed_backend, "brokers_of", lambda _: {})
    state = TopicState(id="new", first={0: 5, 1: 0}, end={0: 9, 1: 0})
    monkeypatch.setattr(KafkaTopics, "states", lambda *_: {TABLE.topic: state})
    with ExitStack() as resources:
        backend = DeployedBackend(PLAN, ARGUMENTS, resources)
        assert backend.has_lost_events(TABLE, TableProgress(offsets={0: 4}))
        assert not backend.has_lost_events(TABLE, TableProgress(offsets={0: 5}))
        assert backend.has_lost_events(TABLE, TableProgress(offsets={0: 10}))
        assert backend.has_lost_events(TABLE, TableProgress(offsets={0: 5}, topic_id="old"))
