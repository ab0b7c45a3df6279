"""The keeper on moto: what it starts, leaves alone and ends, and when it raises the alarm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.glue.models import glue_backends
from moto.moto_api import state_manager

from cdclake import metrics, stream_keeping
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.forget.deployed_erasure_backend import DeployedErasureBackend
from cdclake.jobs.stream.handover import HandedOver, Handover
from cdclake.plan import Plan
from tests.load_function import load
from tests.unit.deployed.published_metrics import published
from tests.unit.verify.lakes import make_table

BUCKET, KEY, JOB = "state", "control/stream.json", "shop-stream_changes"
PAUSE = "control/pause.json"
ACCOUNT, REGION = "123456789012", "eu-west-1"
MINUTE = timedelta(minutes=1)


class Stream:
    """The job in moto, whose runs end as a test says."""

    def __init__(self, keeper: Any) -> None:
        self.keeper = keeper
        self.glue = boto3.client("glue")

    @property
    def runs(self) -> list[Any]:
        """Moto's own objects, the oldest first."""
        job = glue_backends[ACCOUNT][REGION].jobs[JOB]
        return list(job.job_runs)

    def call(self, after: timedelta = timedelta(0)) -> Any:
        """Have the keeper look, so much later."""
        return self.keeper.keep(datetime.now(UTC) + after)

    def end(self, state: str, lived: timedelta = MINUTE) -> None:
        """End the newest run, after it has lived so long."""
        run = self.runs[-1]
        run.status = state
        run.completed_on = run.started_on + lived


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stream]:
    values = {"JOB": JOB, "BUCKET": BUCKET, "KEY": KEY, "DEPLOYMENT": "d1", "DIMENSION": "shop"}
    values |= {"PAUSE": PAUSE, "SCHEDULED": ""}
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    where = {"CreateBucketConfiguration": {"LocationConstraint": REGION}}
    boto3.client("s3").create_bucket(Bucket=BUCKET, **where)
    command = {"Name": "gluestreaming", "ScriptLocation": "s3://state/x.py"}
    boto3.client("glue").create_job(
        Name=JOB, Role="r", Command=command, ExecutionProperty={"MaxConcurrentRuns": 1}
    )
    # Moto lets a run go on whenever somebody looks at it; here it ends when a test says so.
    state_manager.set_transition("glue::job_run", {"progression": "manual", "times": 1_000_000})
    yield Stream(load("stream_keeper"))
    state_manager.unset_transition("glue::job_run")


@pytest.fixture
def stopped(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that the keeper stops; moto has no BatchStopJobRun."""
    ids: list[str] = []
    real = boto3.client("glue")

    def stop(*, JobName: str, JobRunIds: list[str]) -> dict[str, Any]:
        assert JobName == JOB
        ids.extend(JobRunIds)
        return {"SuccessfulSubmissions": [{"JobRunId": each} for each in JobRunIds]}

    glue = SimpleNamespace(
        get_job_runs=real.get_job_runs, start_job_run=real.start_job_run, batch_stop_job_run=stop
    )
    monkeypatch.setattr(stream.keeper, "glue", lambda: glue)
    return ids


@pytest.fixture
def scheduled(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> Stream:
    """A deployment in the scheduled mode, with a run that began an hour ago."""
    monkeypatch.setenv("DEPLOYMENT", "")
    monkeypatch.setenv("SCHEDULED", "true")
    stream.glue.start_job_run(JobName=JOB)
    stream.runs[-1].started_on -= timedelta(hours=1)
    return stream


def pause() -> None:
    """Write what `cdclake pause --target aws` writes."""
    s3 = boto3.client("s3")
    s3.put_object(Bucket=BUCKET, Key=PAUSE, Body=b"{}")
    s3.put_object(Bucket=BUCKET, Key=KEY, Body=b'{"deployment": null}')


def ordered() -> Any:
    return json.loads(boto3.client("s3").get_object(Bucket=BUCKET, Key=KEY)["Body"].read())


def test_a_stream_that_never_ran_is_started_once(stream):
    assert stream.call().did.startswith("started ")
    assert stream.call().did == "nothing: it runs"
    assert [run.arguments for run in stream.runs] == [{"--deployment": "d1"}]
    assert ordered() == {"deployment": "d1"}


@pytest.mark.parametrize("state", ["FAILED", "STOPPED", "SUCCEEDED", "TIMEOUT"])
def test_one_that_ended_after_a_long_life_is_started_at_once(stream, state):
    stream.call()
    stream.end(state, lived=11 * MINUTE)
    assert stream.call(12 * MINUTE).did.startswith("started ")


def test_one_that_people_stopped_early_is_started_at_once(stream):
    stream.call()
    stream.end("STOPPED")
    assert stream.call().did.startswith("started ")


def test_failures_are_followed_by_longer_pauses_and_by_an_alarm(stream):
    stream.call()
    told = []
    for failures in range(1, stream_keeping.FAILURES_TO_ALARM + 1):
        stream.end("FAILED")
        seen = stream.call(MINUTE)
        told.append((seen.failures, seen.needs_operator))
        assert stream.call(MINUTE + timedelta(seconds=30)).did == "waits"
        pause = stream.keeper.pause(failures, stream.runs[-1].job_run_id)
        assert stream.call(MINUTE + pause).did.startswith("started")
    assert told == [(failures, failures >= 6) for failures in range(1, 7)]


@pytest.mark.parametrize("state", ["FAILED", "SUCCEEDED"])
def test_a_stream_that_fails_for_hours_is_still_started(stream, state):
    stream.call()
    for _ in range(3 * stream_keeping.FAILURES_TO_ALARM):
        stream.end(state, lived=timedelta(seconds=20))
        last = stream.call(timedelta(minutes=1 + stream_keeping.MAX_PAUSE_MINUTES))
        assert last.did.startswith("started ")
    assert last.needs_operator
    stream.end("FAILED", lived=timedelta(hours=1))
    healed = stream.call(timedelta(hours=2))
    assert (healed.did.startswith("started "), healed.needs_operator) == (True, False)


def test_pauses_double_have_jitter_and_a_limit():
    keeper = load("stream_keeper")
    pauses = [keeper.pause(1, f"jr_{run}") for run in range(50)]
    assert len(set(pauses)) > 25 and all(0.75 * MINUTE <= pause <= MINUTE for pause in pauses)
    assert keeper.pause(1_000, "jr") <= timedelta(minutes=stream_keeping.MAX_PAUSE_MINUTES)
    assert abs(keeper.pause(3, "jr") - 4 * keeper.pause(1, "jr")) < timedelta(seconds=1)


def test_a_new_deployment_begins_to_count_anew(stream, monkeypatch):
    stream.call()
    for _ in range(stream_keeping.FAILURES_TO_ALARM):
        stream.end("FAILED")
        stream.call(timedelta(hours=1))
    for run in stream.runs:
        run.started_on -= timedelta(hours=1)
    stream.end("FAILED")
    monkeypatch.setenv("DEPLOYMENT", "d2")
    seen = stream.call()
    assert (seen.did.startswith("started "), seen.failures) == (True, 0)


def test_somebody_else_who_was_faster_is_fine(stream, monkeypatch):
    stream.call()
    monkeypatch.setattr(stream.keeper, "recent_runs", list)  # as they were a moment before
    seen = stream.call()
    assert (seen.running, seen.did) == (True, "nothing: another call has started it")
    assert len(stream.runs) == 1


def refusing(code: str) -> Any:
    """A Glue that has no run and starts none."""

    def start(**_: Any) -> Any:
        raise ClientError({"Error": {"Code": code, "Message": "full"}}, "StartJobRun")

    return SimpleNamespace(get_job_runs=lambda **_: {"JobRuns": []}, start_job_run=start)


def test_a_start_that_glue_refuses_comes_out_so_that_lambda_counts_it(stream, monkeypatch):
    monkeypatch.setattr(stream.keeper, "glue", lambda: refusing("AccessDeniedException"))
    with pytest.raises(ClientError, match="AccessDenied"):
        stream.call()


def test_keeper_of_an_account_without_room_is_not_silent(stream, monkeypatch):
    code = "ResourceNumberLimitExceededException"
    monkeypatch.setattr(stream.keeper, "glue", lambda: refusing(code))
    did = stream.keeper.handler({}, None)["did"]
    assert did.startswith("waits for the account's quota (") and code in did
    name = metrics.STREAM_RUNNING.name
    assert published(name, deployment="shop") == {name: 0.0}


def test_a_new_deployment_is_ordered_and_waited_for_before_anything_is_stopped(stream, monkeypatch):
    stream.call()
    stream.runs[-1].started_on -= timedelta(hours=2)
    monkeypatch.setenv("DEPLOYMENT", "d2")
    assert stream.call().did == "nothing: it runs"
    assert ordered() == {"deployment": "d2"}
    assert stream.call(14 * MINUTE).did == "nothing: it runs"
    assert len(stream.runs) == 1


def test_a_stream_that_does_not_end_for_the_next_deployment_is_stopped(
    stream, stopped, monkeypatch
):
    stream.call()
    stream.runs[-1].started_on -= timedelta(hours=2)
    monkeypatch.setenv("DEPLOYMENT", "d2")
    stream.call()
    assert stopped == []
    assert stream.call(16 * MINUTE).did == "stopped a run that did not end by itself"
    assert stopped == [stream.runs[-1].job_run_id]


def test_refused_stop_is_logged_and_needs_an_operator_if_repeated(
    stream, stopped, monkeypatch, caplog
):
    stream.call()
    stream.runs[-1].started_on -= timedelta(hours=2)
    monkeypatch.setenv("DEPLOYMENT", "d2")
    stream.call()

    def refuse(*, JobName: str, JobRunIds: list[str]) -> dict[str, Any]:
        detail = {"ErrorCode": "InternalServiceException", "ErrorMessage": "not now"}
        return {"Errors": [{"JobName": JobName, "JobRunId": JobRunIds[0], "ErrorDetail": detail}]}

    monkeypatch.setattr(stream.keeper.glue(), "batch_stop_job_run", refuse)
    run = stream.runs[-1].job_run_id
    for after, needs_operator in ((16, False), (29, False), (31, True)):
        seen = stream.call(after * MINUTE)
        assert seen.did == f"could not stop {run}: InternalServiceException: not now"
        assert (seen.running, seen.needs_operator) == (True, needs_operator)
    assert {each.levelname for each in caplog.records if run in each.message} == {"ERROR"}


def test_run_that_is_stopping_is_not_stopped_again(stream, stopped, monkeypatch):
    stream.call()
    stream.runs[-1].started_on -= timedelta(hours=2)
    monkeypatch.setenv("DEPLOYMENT", "d2")
    stream.call()
    stream.runs[-1].status = "STOPPING"
    assert stream.call(16 * MINUTE).did == "nothing: it runs"
    assert stopped == []


def test_a_stream_that_is_switched_off_is_told_so_and_not_started_again(stream, monkeypatch):
    stream.call()
    monkeypatch.setenv("DEPLOYMENT", "")
    stream.call()
    assert ordered() == {"deployment": None}
    stream.end("SUCCEEDED")
    assert stream.call(timedelta(hours=1)).did == "nothing: no stream is wanted"


def test_a_scheduled_run_after_an_always_on_deployment_is_left_alone(stream, monkeypatch):
    stream.call()
    monkeypatch.setenv("DEPLOYMENT", "")
    monkeypatch.setenv("SCHEDULED", "true")
    stream.call()
    stream.end("SUCCEEDED")  # the order names no deployment, so the always-on run ends
    stream.glue.start_job_run(JobName=JOB)
    assert stream.call(timedelta(hours=5)).did == "nothing: it runs"
    stream.end("SUCCEEDED")
    seen = stream.call(timedelta(hours=6))
    assert (seen.running, seen.failures, len(stream.runs)) == (False, 0, 2)


def test_a_scheduled_run_before_the_first_order_is_left_alone(scheduled, stopped):
    scheduled.call()
    assert ordered() == {"deployment": None}
    assert scheduled.call(timedelta(hours=5)).did == "nothing: it runs"
    assert stopped == []


def test_a_scheduled_run_before_a_pause_is_left_alone_once_resumed(scheduled, stopped):
    pause()
    assert scheduled.call(MINUTE).did == "nothing: it runs"
    boto3.client("s3").delete_object(Bucket=BUCKET, Key=PAUSE)
    assert scheduled.call(timedelta(hours=5)).did == "nothing: it runs"
    assert stopped == []


def test_a_scheduled_run_is_stopped_a_quarter_of_an_hour_after_a_pause(scheduled, stopped):
    pause()
    assert scheduled.call(14 * MINUTE).did == "nothing: it runs"
    assert scheduled.call(16 * MINUTE).did == "stopped a run that did not end by itself"
    assert stopped == [scheduled.runs[-1].job_run_id]


def test_an_always_on_run_that_hangs_is_stopped_in_the_scheduled_mode(stream, stopped, monkeypatch):
    stream.call()
    stream.runs[-1].started_on -= timedelta(hours=1)
    monkeypatch.setenv("DEPLOYMENT", "")
    monkeypatch.setenv("SCHEDULED", "true")
    assert stream.call().did == "nothing: it runs"
    assert stream.call(16 * MINUTE).did == "stopped a run that did not end by itself"
    assert stopped == [stream.runs[-1].job_run_id]


def test_every_run_is_stopped_when_the_stream_is_switched_off(scheduled, stopped, monkeypatch):
    monkeypatch.setenv("SCHEDULED", "")
    scheduled.call()
    assert scheduled.call(16 * MINUTE).did == "stopped a run that did not end by itself"
    assert stopped == [scheduled.runs[-1].job_run_id]


def test_every_call_says_how_it_stands(stream):
    stream.keeper.handler({"source": "aws.glue"}, None)
    found = boto3.client("cloudwatch").list_metrics(Namespace=metrics.NAMESPACE)["Metrics"]
    assert {metric["MetricName"] for metric in found} == {
        "StreamRunning", "StreamFailures", "StreamGivenUp",
    }  # fmt: skip
    [dimensions] = {json.dumps(metric["Dimensions"]) for metric in found}
    assert json.loads(dimensions) == [{"Name": "Deployment", "Value": "shop"}]


def restart() -> None:
    """Change the order as `forget` does."""
    table = make_table(name="t")
    plan = Plan(name="shop", source_database="d", lake_database="l", tables=(table,))
    arguments = {"control": f"s3://{BUCKET}/control", "JOB_NAME": "shop-forget_rows"}
    DeployedErasureBackend(plan, arguments, None).restart_stream()  # type: ignore[arg-type]


def goes_on(handover: Handover) -> bool:
    batches: list[int] = []
    with suppress(HandedOver):
        handover.guarded(lambda _, number: batches.append(number))(None, 1)  # type: ignore[arg-type]
    return bool(batches)


def test_a_restart_stays_ordered_until_the_stream_reads_it(stream):
    stream.call()
    control = ObjectStore(f"s3://{BUCKET}/control")
    running = Handover(control, "d1")
    assert goes_on(running)
    restart()
    assert stream.call().did == "nothing: it runs"  # before the stream's next look
    assert not goes_on(running)
    stream.end("SUCCEEDED", 2 * stream.keeper.HEALTHY_AFTER)
    assert stream.call().did.startswith("started")
    assert goes_on(Handover(control, "d1"))


def test_a_stream_that_ignores_a_restart_is_stopped(stream, stopped):
    """As one of an earlier release that still runs."""
    stream.call()
    stream.runs[-1].started_on -= 10 * MINUTE
    restart()
    assert stream.call(after=10 * MINUTE).did == "nothing: it runs"
    stream.call(after=20 * MINUTE)
    assert len(stopped) == 1


def test_a_stream_of_another_release_ends_by_the_deployment(stream):
    """An earlier keeper writes the order without the restart: the stream ends once more."""
    control = ObjectStore(f"s3://{BUCKET}/control")
    control.write("stream.json", {"deployment": "d1", "restart": "r"})
    running = Handover(control, "d1")
    control.write("stream.json", {"deployment": "d1"})
    assert not goes_on(running) and goes_on(Handover(control, "d1"))
