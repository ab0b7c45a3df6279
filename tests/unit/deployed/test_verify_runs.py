"""Jobs that the deployed comparison runs before it compares, and how long it waits."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import boto3
import pytest
from moto.glue.models import glue_backends
from moto.moto_api import state_manager

from cdclake import naming
from cdclake.control_objects import PollProgress, ResumeRequest, poll_error_name, poll_name
from cdclake.errors import ComponentFailed, NotRunning
from cdclake.firehose.stream import DeliveryStream
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.verify import catch_up, poll_wait
from cdclake.jobs.verify.catch_up import CatchUp
from cdclake.jobs.verify.deployed_verify import default_wait_s, wait_with_jobs
from cdclake.jobs.verify.not_arrived import NotArrived
from cdclake.polling import Polling
from tests.unit.verify.lakes import make_plan, make_table

POLLS, STREAM = "shop-dev-poll_tables", "shop-dev-stream_changes"
RUNS = {"JOB_NAME": "shop-dev-verify_tables", "runs": "poll_tables,stream_changes"}
CITY = make_table(
    name="city", delivery="poll", polling=Polling(by="v", every="rate(1 day)", deletes="none")
)
STREAMED = make_table()


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """The deployment's jobs and control objects in moto."""
    where = {"LocationConstraint": "eu-west-1"}
    boto3.client("s3").create_bucket(Bucket="state", CreateBucketConfiguration=where)
    for name in (POLLS, STREAM):
        boto3.client("glue").create_job(
            Name=name, Role="r", Command={"Name": "glueetl", "ScriptLocation": "s3://state/x.py"}
        )
    monkeypatch.setattr(CatchUp, "_await_kafka", lambda *_: None)
    monkeypatch.setattr(catch_up, "_POLL_INTERVAL_S", 0.01)
    monkeypatch.setattr(poll_wait, "_INTERVAL_S", 0.01)
    return ObjectStore("s3://state/control")


def started(name: str) -> list[dict[str, str]]:
    runs = glue_backends["123456789012"]["eu-west-1"].jobs[name].job_runs
    return [dict(run.arguments or {}) for run in runs]


def arrival(mode: Any = "scheduled", **more: Any) -> CatchUp:
    """The wait of a lake whose three records arrive when the stream has been run."""
    defaults: dict[str, Any] = {
        "plan": make_plan(STREAMED, mode=mode),
        "dsn": "",
        "ends": lambda _: {"p.public.t": {0: 3}},
        "progress": Progress,
        "arrived": lambda _: {"t": {0: 3 if started(STREAM) else 0}},
        "wait_s": 0.1,
    }
    return CatchUp(**{**defaults, **more})


def poll_reports(
    monkeypatch: pytest.MonkeyPatch, control: ObjectStore, error: str | None
) -> Callable[[], None]:
    """Have the run of the polls write its report while it is waited for."""

    def pause(_: float) -> None:
        [given] = started(POLLS)
        lines = [{"table": name, "error": error} for name in given["--tables"].split(",")]
        control.write(naming.report_name(given["--run"]), {"ok": not error, "tables": lines})

    state_manager.set_transition("glue::job_run", {"progression": "manual", "times": 2})
    monkeypatch.setattr("cdclake.jobs.runtime.glue_runs.time.sleep", pause)
    return lambda: state_manager.unset_transition("glue::job_run")


@pytest.mark.parametrize("error", [None, "city: two rows have the key 1"])
def test_polled_tables_are_polled_by_a_run_of_the_job(
    control: ObjectStore, monkeypatch: pytest.MonkeyPatch, error: str | None
) -> None:
    undo = poll_reports(monkeypatch, control, error)
    try:
        found = wait_with_jobs(arrival(), control, RUNS)([CITY], lambda: None)
    finally:
        undo()
    assert found == ({"city": NotArrived(error)} if error else {})
    [given] = started(POLLS)
    assert given["--tables"] == "city"
    assert given["--run"].startswith("verify_tables-")
    assert started(STREAM) == []


def test_scheduled_stream_is_run_once_if_records_wait(control: ObjectStore) -> None:
    wait = wait_with_jobs(arrival(), control, RUNS)
    assert wait([STREAMED], lambda: None) == {}
    assert started(STREAM) == [{}]
    assert wait([STREAMED], lambda: None) == {}
    assert len(started(STREAM)) == 1


@pytest.mark.parametrize(
    ("more", "runs"),
    [
        ({"mode": "always_on"}, RUNS["runs"]),
        ({}, "poll_tables"),
        ({"obstacle": lambda: NotRunning("the stream is paused", "resume")}, RUNS["runs"]),
    ],
    ids=["always on", "off", "paused"],
)
def test_stream_that_no_comparison_may_start_is_not_run(
    control: ObjectStore, more: dict[str, Any], runs: str
) -> None:
    wait = wait_with_jobs(arrival(**more), control, {**RUNS, "runs": runs})
    with pytest.raises((ComponentFailed, NotRunning)):
        wait([STREAMED], lambda: None)
    assert started(STREAM) == []


def test_stopped_table_starts_no_stream(control: ObjectStore) -> None:
    stopped = Progress()
    stopped.table("t").stop("columns differ")
    wait = wait_with_jobs(arrival(progress=lambda: stopped), control, RUNS)
    assert "columns differ" in wait([STREAMED], lambda: None)["t"].reason
    assert started(STREAM) == []


def held(failures: int = 1, since_s: float = 0.0) -> Progress:
    """Return a progress with `t` held back, after this many failures and this long ago."""
    progress = Progress()
    for _ in range(failures):
        progress.table("t").hold("S3 does not answer", time.time() - since_s)
    return progress


ALL_ARRIVED = {"arrived": lambda _: {"t": {0: 3}}}


@pytest.mark.parametrize("waiting", ["held", "held for long", "resumed"])
def test_run_of_the_stream_tries_held_tables_again(control: ObjectStore, waiting: str) -> None:
    before = held() if waiting == "held" else held(failures=9, since_s=3600.0)
    if waiting == "resumed":
        before.table("t").ask_to_resume(ResumeRequest())

    def progress() -> Progress:
        return Progress() if started(STREAM) else before

    wait = wait_with_jobs(arrival(progress=progress, **ALL_ARRIVED), control, RUNS)
    assert wait([STREAMED], lambda: None) == {}
    assert len(started(STREAM)) == 1


def test_table_that_a_run_holds_back_again_is_not_waited_for(control: ObjectStore) -> None:
    fails = arrival(progress=held, wait_s=60.0, **ALL_ARRIVED)
    begun = time.monotonic()
    found = wait_with_jobs(fails, control, RUNS)([STREAMED], lambda: None)
    assert "S3 does not answer" in found["t"].reason
    assert len(started(STREAM)) == 1
    assert time.monotonic() - begun < 10


def test_table_whose_pause_a_run_would_not_see_end_starts_no_stream(control: ObjectStore) -> None:
    fails = arrival(progress=lambda: held(failures=9), wait_s=60.0, **ALL_ARRIVED)
    found = wait_with_jobs(fails, control, RUNS)([STREAMED], lambda: None)
    assert "9 times" in found["t"].reason
    assert started(STREAM) == []


def test_run_of_the_stream_does_not_count_as_waiting(control: ObjectStore) -> None:
    def run() -> None:
        time.sleep(0.3)  # longer than `wait_s`

    late = iter([0, 0, 0, 3])
    slow = arrival(arrived=lambda _: {"t": {0: next(late)}}, run_stream=run)
    assert slow.wait([STREAMED], lambda: None) == {}


def test_failed_run_of_the_stream_is_the_error(
    control: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdclake.jobs.table_jobs.deployment_jobs.run_to_end", lambda *_: "TIMEOUT")
    with pytest.raises(ComponentFailed, match=f"{STREAM} ended as TIMEOUT"):
        wait_with_jobs(arrival(), control, RUNS)([STREAMED], lambda: None)


def test_without_a_job_of_polls_the_next_one_is_waited_for(control: ObjectStore) -> None:
    wait = wait_with_jobs(arrival(wait_s=60.0), control, {"JOB_NAME": "shop-verify_tables"})

    def poll() -> None:
        control.write(poll_name("city"), PollProgress(read_at=int(time.time() * 1e6)).to_json())

    assert wait([CITY], poll) == {}
    late = wait_with_jobs(arrival(), control, {"JOB_NAME": "shop-verify_tables"})
    assert "no poll has read the table within" in late([CITY], lambda: None)["city"].reason
    control.write(poll_error_name("city"), {"error": "permission denied for table city"})
    assert late([CITY], lambda: None) == {"city": NotArrived("permission denied for table city")}
    assert started(POLLS) == []


def test_default_wait_includes_the_buffers_of_firehose() -> None:
    events = make_table(name="events", delivery="firehose")
    stream = DeliveryStream(
        name="events", topic="p.public.events", tables=("events",), routed=False,
        buffer_seconds=900, buffer_mib=64, function_seconds=60, function_mib=1,
        function_retries=3, retry_seconds=7200, error_prefix="firehose",
        mib_per_second=1,
    )  # fmt: skip
    plan = replace(make_plan(STREAMED), tables=(STREAMED, events), deliveries=(stream,))
    assert default_wait_s(plan, [STREAMED]) == 600
    assert default_wait_s(plan, [STREAMED, events]) == 1560
