"""`cdclake job --target aws` against moto: what is started, what is printed, how it ends."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoRegionError
from moto.glue.models import glue_backends
from moto.moto_api import state_manager

from cdclake import naming
from cdclake.cli import main as command
from cdclake.deployed import aws_jobs
from cdclake.job_advance import JobAdvance
from cdclake.jobs.verify.report import TableComparison
from tests.unit.config.pipelines import VALID

NAME = "shop-dev-apply_changes"
DELIVERED = "  public.events: {key: [id], columns: {id: bigint}, delivery: firehose}\n"
REPORT = {"table": "orders", "seconds": 1.5, "rows_applied": 7, "error": None} | {
    f"{what}_{when}": 1 for what in ("files", "bytes", "snapshots") for when in ("before", "after")
}
Run = Callable[..., tuple[object, str, str]]


@pytest.fixture
def run(capsys: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Run:
    file = tmp_path / "p.yaml"
    file.write_text(VALID + DELIVERED + "environments: {dev: {}}\n")
    monkeypatch.setattr(aws_jobs, "_POLL_S", 0.0)

    def run_verb(
        *arguments: str, words: tuple[str, ...] = ("job",), as_json: bool = True
    ) -> tuple[object, str, str]:
        where: tuple[str, ...] = ("--target", "aws", "--file", str(file), "--environment", "dev")
        where += ("--json",) if as_json else ()
        with pytest.raises(SystemExit) as caught:
            command.main((*words, *arguments, *where))
        return caught.value.code, *capsys.readouterr()

    return run_verb


def started(job: str = NAME) -> list[dict[str, str]]:
    """The arguments of every run."""
    runs = glue_backends["123456789012"]["eu-west-1"].jobs[job].job_runs
    return [dict(run.arguments or {}) for run in runs]


def writes_its_report(
    monkeypatch: pytest.MonkeyPatch, s3: Any, *, ok: bool, job: str = NAME, **report: Any
) -> None:
    """Have the run that is waited for write a report, as the job does at its end."""

    def end(seconds: float) -> None:
        del seconds
        body = json.dumps({"ok": ok, "tables": [REPORT], **report}).encode()
        s3.put_object(
            Bucket="state", Key=f"control/reports/{started(job)[0]['--run']}.json", Body=body
        )

    monkeypatch.setattr("cdclake.deployed.aws_jobs.time.sleep", end)
    # Moto has a run go on by a step whenever somebody asks for it: starting, running, over.
    state_manager.set_transition("glue::job_run", {"progression": "manual", "times": 1})


def test_progress_of_a_run_is_shown_on_standard_error(run, jobs_in_moto, monkeypatch):
    writes_its_report(monkeypatch, jobs_in_moto, ok=True)
    advance = JobAdvance(done=3, total=20, rows=5000, table="orders").to_json()
    write_report = time.sleep

    def end(seconds: float) -> None:
        write_report(seconds)
        name = naming.advance_name(started()[0]["--run"])
        jobs_in_moto.put_object(
            Bucket="state", Key=f"control/{name}", Body=json.dumps(advance).encode()
        )

    monkeypatch.setattr("cdclake.deployed.aws_jobs.time.sleep", end)
    state_manager.set_transition("glue::job_run", {"progression": "manual", "times": 3})
    _, _, shown = run("apply_changes")
    last = json.loads(shown.splitlines()[-1])["progress"]
    assert (last["state"], last["done"], last["total"]) == ("ended", 3, 20)
    assert (last["unit"], last["now"]) == ("tables", "orders is done, 5,000 rows")


@pytest.mark.parametrize(("error", "code"), [(None, 0), ("a file is missing", 4)])
def test_a_run_is_awaited_and_its_report_printed(run, jobs_in_moto, monkeypatch, error, code):
    line = REPORT | {"error": error}
    writes_its_report(monkeypatch, jobs_in_moto, ok=error is None, tables=[line])
    ended, out, _ = run("apply_changes", "--table", "public.orders")
    told = json.loads(out)
    assert (ended, told["ok"], told["tables"]) == (code, error is None, [line])
    assert ("error" in told) == (code != 0)
    [arguments] = started()
    assert arguments["--tables"] == "orders"


OTHERS = """
  public.city:
    key: [id]
    columns: {id: bigint, at: timestamptz}
    capture: {poll: {by: at, every: rate(1 day)}}
    publish: [hudi: {name: city_copy}]
derived:
  daily: {sql: "SELECT order_id FROM orders_current", key: [order_id]}
environments: {dev: {}}
"""


@pytest.mark.parametrize(
    ("job", "given"),
    [("refresh_derived", "daily"), ("publish_hudi", "city_copy"), ("poll_tables", "city")],
)
def test_a_job_runs_for_its_own_kind_of_table(run, jobs_in_moto, monkeypatch, tmp_path, job, given):
    (tmp_path / "p.yaml").write_text(VALID + OTHERS)
    name = add_job(job)
    writes_its_report(monkeypatch, jobs_in_moto, ok=True, job=name)
    code, out, _ = run(job, "--table", given)
    assert (code, json.loads(out)["ok"]) == (0, True)
    [arguments] = started(name)
    assert arguments["--tables"] == given


def test_a_deployed_poll_is_asked_for_all_rows(run, jobs_in_moto, monkeypatch, tmp_path):
    (tmp_path / "p.yaml").write_text(VALID + OTHERS)
    name = add_job("poll_tables")
    writes_its_report(monkeypatch, jobs_in_moto, ok=True, job=name)
    assert run("poll_tables", "--table", "city", "--whole")[0] == 0
    assert [arguments["--whole"] for arguments in started(name)] == ["true"]


NOT_POLLED = "orders is not polled: its changes come from the WAL"


def test_no_run_is_paid_for_a_table_that_is_not_polled(run, jobs_in_moto, tmp_path):
    (tmp_path / "p.yaml").write_text(VALID + OTHERS)
    name = add_job("poll_tables")
    code, out, _ = run("poll_tables", "--table", "orders")
    assert (code, json.loads(out)["error"]["message"]) == (2, NOT_POLLED)
    assert started(name) == []


def add_job(job: str) -> str:
    """Create a job of the deployment in moto; return its name."""
    boto3.client("glue").create_job(
        Name=f"shop-dev-{job}",
        Role="r",
        Command={"Name": "glueetl", "ScriptLocation": "s3://state/x.py"},
        DefaultArguments={"--control": "s3://state/control"},
    )
    return f"shop-dev-{job}"


@pytest.fixture
def load_job(jobs_in_moto):
    """The job of the bulk load in moto; its name."""
    return add_job("load_tables")


@pytest.mark.parametrize(("error", "code"), [(None, 0), ("late", 4)])
def test_a_loaded_source_keeps_wal_until_the_connector_runs(
    run, jobs_in_moto, load_job, monkeypatch, error, code
):
    tables = [REPORT | {"error": error}]
    writes_its_report(monkeypatch, jobs_in_moto, ok=error is None, job=load_job, tables=tables)
    ended, out, _ = run("load_tables", as_json=False)
    assert (ended, "keeps WAL until the connector runs" in out) == (code, error is None)


@pytest.mark.parametrize(("kind", "code"), [("bad_input", 2), ("not_running", 3), ("error", 4)])
def test_the_error_that_ended_a_job_is_that_of_the_command(
    run, jobs_in_moto, load_job, monkeypatch, kind, code
):
    error = {"code": kind, "message": "the connector is on", "remedy": "set `connector: off`"}
    writes_its_report(monkeypatch, jobs_in_moto, ok=False, job=load_job, tables=[], error=error)
    ended, out, _ = run("load_tables")
    told = json.loads(out)
    assert (ended, told["tables"], told["error"]["message"]) == (code, [], error["message"])


def test_a_run_that_dies_before_its_report_is_a_failure(run, jobs_in_moto):
    code, out, _ = run("apply_changes")
    told = json.loads(out)["error"]
    assert (code, told["component"]) == (4, NAME)
    assert "without a report" in told["message"]
    assert "--tables" not in started()[0]


@pytest.mark.parametrize(
    ("verb", "tables"),
    [
        (("replay", "--table", "orders"), "orders"),
        (("resync", "public.orders"), "orders"),
    ],
)
def test_day_two_is_a_job_too(run, jobs_in_moto, monkeypatch, verb, tables):
    name = "shop-dev-operate"
    writes_its_report(monkeypatch, jobs_in_moto, ok=True, job=name)
    code, out, _ = run(*verb, words=())
    assert (code, json.loads(out)["ok"]) == (0, True)
    [arguments] = started(name)
    assert (arguments["--verb"], arguments.get("--tables")) == (verb[0], tables)


@pytest.mark.parametrize("verb", [("replay", "--table", "events"), ("resync", "public.events")])
def test_nothing_is_asked_of_the_stream_for_what_firehose_delivers(run, jobs_in_moto, verb):
    code, out, _ = run(*verb, words=())
    told = json.loads(out)["error"]
    assert (code, told["code"]) == (2, "bad_input")
    assert told["message"] == "the stream does not write events: its delivery is firehose"
    assert started("shop-dev-operate") == []


@pytest.mark.parametrize("verb", [("replay",), ("resync", "orders"), ("resync", "--expired")])
def test_no_job_waits_for_a_stream_that_the_file_turns_off(run, jobs_in_moto, tmp_path, verb):
    (tmp_path / "p.yaml").write_text(f"{VALID}environments: {{dev: {{aws: {{stream: 'off'}}}}}}\n")
    ended, out, _ = run(*verb, words=())
    assert (ended, started("shop-dev-operate")) == (2, [])
    assert "the deployment has no stream" in json.loads(out)["error"]["message"]


VERIFY = "shop-dev-verify_tables"
COMPARED = {"tables": [asdict(TableComparison(table="orders", source="public.orders", missing=1))]}


@pytest.mark.parametrize(("ok", "code"), [(True, 0), (False, 1)])
def test_a_comparison_is_a_job_whose_difference_is_the_exit_code(
    run, jobs_in_moto, monkeypatch, ok, code
):
    writes_its_report(monkeypatch, jobs_in_moto, ok=ok, job=VERIFY, **COMPARED)
    words = ("verify", "--table", "public.orders", "--wait", "300", "--sample", "1000")
    ended, out, _ = run(*words, words=())
    assert (ended, json.loads(out)["tables"]) == (code, COMPARED["tables"])
    [arguments] = started(VERIFY)
    given = {"--tables": "orders", "--wait": "300", "--sample": "1000"}
    assert given.items() <= arguments.items()


def test_spark_is_the_jobs_own_and_athena_is_not(run, jobs_in_moto, monkeypatch):
    writes_its_report(monkeypatch, jobs_in_moto, ok=True, job=VERIFY, tables=[])
    assert run("verify", "--reader", "spark", words=())[0] == 0
    [arguments] = started(VERIFY)
    assert arguments["--reader"] == "spark"
    assert "--wait" not in arguments  # the job knows how long its plan's changes take


def test_a_comparison_that_could_not_be_made_is_no_difference(run, jobs_in_moto, monkeypatch):
    told = {"code": "component_failed", "message": "the lake was behind", "remedy": "wait longer"}
    writes_its_report(monkeypatch, jobs_in_moto, ok=False, job=VERIFY, tables=[], error=told)
    code, out, _ = run("verify", words=())
    explained = json.loads(out)["error"]
    assert (code, explained["component"]) == (4, VERIFY)
    assert (explained["message"], explained["remedy"]) == (told["message"], told["remedy"])


def test_the_stream_is_started_and_left(run, jobs_in_moto):
    code, out, _ = run("stream_changes")
    assert (code, json.loads(out)["ok"]) == (0, True)
    assert len(started("shop-dev-stream_changes")) == 1


def test_a_job_that_runs_already_is_left_alone(run, jobs_in_moto):
    state_manager.set_transition("glue::job_run", {"progression": "manual", "times": 1_000_000})
    boto3.client("glue").start_job_run(JobName=NAME)
    code, out, _ = run("apply_changes")
    assert (code, json.loads(out)["error"]["message"]) == (4, f"{NAME} is already running")


def test_what_is_not_deployed_is_said_to_be_missing(run):
    code, out, _ = run("apply_changes")
    assert (code, json.loads(out)["error"]["code"]) == (3, "not_running")


class Refusing:
    """Glue's client, or S3's, of which one call fails."""

    def __init__(self, real: Any, call: str, error: Exception) -> None:
        self._real, self._call, self._error = real, call, error

    def __getattr__(self, name: str) -> Any:
        if name == self._call:
            return self._fail
        return getattr(self._real, name)

    def _fail(self, **_: Any) -> None:
        raise self._error


def denied(operation: str) -> ClientError:
    return ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, operation)


@pytest.mark.parametrize(
    ("service", "call", "error", "told", "remedy"),
    [
        ("glue", "start_job_run", denied("StartJobRun"), f"start {NAME}", "use a role with"),
        ("glue", "get_job_run", denied("GetJobRun"), "follow the run", "use a role with"),
        ("glue", "get_job", denied("GetJob"), f"read the report of {NAME}", "use a role with"),
        ("s3", "get_object", denied("GetObject"), f"read the report of {NAME}", "use a role with"),
        (
            "glue", "get_job_run",
            ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow"}}, "GetJobRun"),
            "follow the run", "fix the error that AWS reports",
        ),
        (
            "glue", "start_job_run", EndpointConnectionError(endpoint_url="https://glue"),
            "https://glue", "reaches AWS",
        ),
    ],
)  # fmt: skip
def test_whatever_a_call_is_told_is_explained(
    run, jobs_in_moto, monkeypatch, service, call, error, told, remedy
):
    real = boto3.client

    def client(name: str) -> Any:
        return Refusing(real(name), call, error) if name == service else real(name)

    monkeypatch.setattr(boto3, "client", client)
    code, out, _ = run("apply_changes")
    explained = json.loads(out)["error"]
    assert (code, explained["component"]) == (4, NAME)
    assert told in explained["message"] and remedy in explained["remedy"]


def test_nobody_in_particular_is_told_how_to_say_who(run, monkeypatch):
    def nowhere(_: str) -> Any:
        raise NoRegionError

    monkeypatch.setattr(boto3, "client", nowhere)
    code, out, _ = run("apply_changes")
    explained = json.loads(out)["error"]
    assert (code, explained["code"]) == (2, "bad_input")
    assert "specify a region" in explained["message"] and "AWS_REGION" in explained["remedy"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("load_tables", "--table", "orders"), "load_tables always includes all tables"),
        (("apply_changes", "--table", "nothing"), "the file has no table 'nothing'"),
        (("verify_tables",), "unknown job 'verify_tables'"),
        (("stream_changes", "--table", "orders"), "stream_changes always includes all tables"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(run, words, message):
    code, out, _ = run(*words)
    assert (code, json.loads(out)["error"]["message"]) == (2, message)
