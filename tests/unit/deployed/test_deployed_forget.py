"""`forget --target aws` against moto: where keys go, what is refused, and what a job may say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto.glue.models import glue_backends
from moto.moto_api import state_manager

from cdclake import naming
from cdclake.cli import main as command
from cdclake.control_objects import forget_name
from cdclake.deployed import aws_jobs
from cdclake.errors import ComponentFailed, InputError
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.forget.deployed_erasure_backend import DeployedErasureBackend
from cdclake.jobs.forget.forget_job import redacted, take_keys
from cdclake.plan import Plan
from tests.unit.config.pipelines import VALID
from tests.unit.deployed.test_aws_jobs import Refusing, denied
from tests.unit.trace.test_explanation import TABLE

JOB = "shop-dev-forget_rows"
RUNS = "cdclake.jobs.runtime.glue_runs"
KEY = "ada.lovelace@example.org"
DELIVERED = "  public.events: {key: [id], columns: {id: bigint}, delivery: firehose}\n"
DONE = {
    "ok": True, "table": "orders", "keys": 1, "position": "p", "deleted_objects": 3, "stored": [],
    "erased": [{"where": "orders_changes", "what": "events", "count": 2}],
    "shared": [], "elsewhere": [], "redacted_files": [], "remaining": [],
}  # fmt: skip
Run = Callable[..., tuple[object, str, str]]


@pytest.fixture
def s3() -> Any:
    """The job in moto, and its state bucket with versions."""
    client = boto3.client("s3")
    where = {"LocationConstraint": "eu-west-1"}
    client.create_bucket(Bucket="state", CreateBucketConfiguration=where)
    client.put_bucket_versioning(Bucket="state", VersioningConfiguration={"Status": "Enabled"})
    boto3.client("glue").create_job(
        Name=JOB,
        Role="r",
        Command={"Name": "gluestreaming", "ScriptLocation": "s3://state/x.py"},
        DefaultArguments={"--control": "s3://state/control"},
    )
    yield client
    state_manager.unset_transition("glue::job_run")


@pytest.fixture
def run(capsys: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    file = tmp_path / "p.yaml"
    monkeypatch.setattr(aws_jobs, "_POLL_S", 0.0)

    def run_verb(*words: str, more: str = "environments: {dev: {}}\n") -> tuple[object, str, str]:
        file.write_text(VALID + DELIVERED + more)
        where = ("--target", "aws", "--file", str(file), "--environment", "dev")
        with pytest.raises(SystemExit) as caught:
            command.main(("forget", *words, *where, "--json"))
        return caught.value.code, *capsys.readouterr()

    return run_verb


def started() -> list[dict[str, str]]:
    runs = glue_backends["123456789012"]["eu-west-1"].jobs[JOB].job_runs
    return [dict(run.arguments or {}) for run in runs]


def versions(s3: Any) -> list[str]:
    """Keys of every version and delete marker below the folder of orders."""
    found = s3.list_object_versions(Bucket="state", Prefix="control/forgets/")
    return [e["Key"] for kind in ("Versions", "DeleteMarkers") for e in found.get(kind, ())]


def job_runs(
    monkeypatch: pytest.MonkeyPatch, report: dict[str, Any], *, takes: bool = True
) -> list[Any]:
    """Have the run take its order and write this report, as the job does; return what it took.

    Without `takes` it fails earlier, as with a plan that it cannot read.
    """
    taken: list[Any] = []

    def run(seconds: float) -> None:
        del seconds
        [given] = started()
        control = ObjectStore("s3://state/control")
        arguments = {"control": "s3://state/control", "order": given["--order"]}
        if not taken:
            taken.append(take_keys(control, arguments) if takes else None)
            control.write(naming.report_name(given["--run"]), report)

    monkeypatch.setattr("cdclake.deployed.aws_jobs.time.sleep", run)
    state_manager.set_transition("glue::job_run", {"progression": "manual", "times": 2})
    return taken


def test_keys_go_by_an_object_that_the_run_deletes_with_its_versions(
    run: Run, s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = job_runs(monkeypatch, DONE)
    code, out, _ = run("orders", "4711", "--yes", "--grace", "90s")
    assert (code, json.loads(out)["ok"]) == (0, True)
    assert taken == [[("4711",)]]
    [given] = started()
    assert "4711" not in json.dumps(given)
    assert (given["--tables"], given["--grace"]) == ("orders", "90")
    assert versions(s3) == []
    until = {place["where"]: place["until"] for place in json.loads(out)["remaining"]}
    assert until["backups of RDS"].startswith("14 days")
    assert any("CloudWatch" in where for where in until)
    assert until["results of queries in Athena"] == "8 days after each"  # one: old version
    assert "texts of queries in Athena's history" in until
    [reports] = (where for where in until if "control/reports/" in where)
    assert until[reports].startswith("7 days")


@pytest.mark.parametrize("table", ["orders", "events"])
def test_versions_that_a_later_run_leaves_are_named(
    run: Run, s3: Any, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    """A run of `apply_changes` may delete objects, and none of their versions."""
    job_runs(monkeypatch, DONE)
    _, out, _ = run(table, "4711", "--yes")
    until = {place["where"]: place["until"] for place in json.loads(out)["remaining"]}
    [*kept] = (until[where] for where in until if "versions of files" in where)
    assert [text.partition(",")[0] for text in kept] == (
        ["7 days after that run"] if table == "events" else []
    )


def test_values_that_are_left_are_the_exit_code(
    run: Run, s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = {"where": "s3://state/x (version 1)", "part": "JSON", "columns": ["id"]}
    job_runs(monkeypatch, {**DONE, "ok": False, "stored": [place]})
    code, out, _ = run("orders", "4711", "--yes")
    assert (code, json.loads(out)["stored"]) == (1, [place])


@pytest.mark.parametrize(
    ("code", "exit_code"), [("bad_input", 2), ("not_running", 3), ("component_failed", 4)]
)
def test_the_error_of_a_run_is_that_of_the_command(
    run: Run, s3: Any, monkeypatch: pytest.MonkeyPatch, code: str, exit_code: int
) -> None:
    error = {"code": code, "message": "the source still has key number 1", "remedy": "delete it"}
    job_runs(monkeypatch, {"ok": False, "tables": [], "error": error})
    ended, out, _ = run("orders", "4711", "--yes")
    assert (ended, json.loads(out)["error"]["message"]) == (exit_code, error["message"])


def test_keys_of_a_run_that_fails_before_it_reads_them_are_deleted(
    run: Run, s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = {"code": "component_failed", "message": "the plan cannot be read", "remedy": "deploy"}
    job_runs(monkeypatch, {"ok": False, "tables": [], "error": error}, takes=False)
    code, _, _ = run("orders", "4711", "--yes")
    assert (code, versions(s3)) == (4, [])


def test_keys_of_a_job_that_cannot_start_are_deleted(run: Run, s3: Any) -> None:
    state_manager.set_transition("glue::job_run", {"progression": "manual", "times": 1_000_000})
    boto3.client("glue").start_job_run(JobName=JOB)
    code, out, _ = run("orders", "4711", "--yes")
    assert (code, json.loads(out)["error"]["message"]) == (4, f"{JOB} is already running")
    assert versions(s3) == []


@pytest.mark.parametrize(("service", "call"), [("s3", "put_object"), ("glue", "start_job_run")])
def test_a_person_without_the_permission_is_refused(
    run: Run, s3: Any, monkeypatch: pytest.MonkeyPatch, service: str, call: str
) -> None:
    real = boto3.client

    def client(name: str) -> Any:
        return Refusing(real(name), call, denied(call)) if name == service else real(name)

    monkeypatch.setattr(boto3, "client", client)
    code, out, _ = run("orders", "4711", "--yes")
    assert code == 4 and "use a role with this permission" in json.loads(out)["error"]["remedy"]
    assert (started(), versions(s3)) == ([], [])


SINK = "connectors: {lake: {plugin: iceberg-sink, tables: [public.orders]}}\n"
OFF = "aws: {stream: 'off'}\n"


@pytest.mark.parametrize(
    ("words", "more", "reason"),
    [
        (("orders", "1"), SINK, "the connector lake may copy its events"),
        (("orders", "1"), OFF, "has no stream"),
        (("orders", "1", "2", "3", "--keys", "none.txt"), "", "cannot read"),
        (("nothing", "1"), "", "no table 'nothing'"),
    ],
)
def test_what_cannot_be_erased_is_refused_before_keys_are_written(
    run: Run, s3: Any, words: tuple[str, ...], more: str, reason: str
) -> None:
    code, out, _ = run(*words, "--yes", more=f"{more}environments: {{dev: {{}}}}\n")
    assert code == 2 and reason in json.loads(out)["error"]["message"]
    assert (started(), versions(s3)) == ([], [])


def test_an_order_is_taken_once(s3: Any) -> None:
    control = ObjectStore("s3://state/control")
    arguments = {"control": "s3://state/control", "order": "1"}
    for keys in ([["old"]], [["a", "b"]]):
        control.write(forget_name("1"), {"keys": keys})
    control.write(forget_name("12"), {"keys": [["other"]]})
    assert take_keys(control, arguments) == [("a", "b")]
    assert versions(s3) == [f"control/{forget_name('12')}"]
    with pytest.raises(InputError, match="does not exist"):
        take_keys(control, arguments)


REFUSED = ClientError(
    {"Error": {"Code": "AccessDenied", "Message": f"not authorized on {KEY}"}}, "DeleteObject"
)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (REFUSED, "DeleteObject was refused: AccessDenied"),
        (ValueError(f"cannot read {KEY}"), "ValueError"),
        (ValueError("cannot read Ada"), "ValueError"),
        (InputError(f"{KEY!r} is wrong"), "InputError"),
        (ComponentFailed("the copy of key 47 failed", "repair"), "ComponentFailed"),
    ],
)
def test_an_error_says_no_value_of_a_row(error: Exception, told: str) -> None:
    found = redacted(error, [(KEY, "47")])
    assert told in str(found)
    assert not any(value in str(found) for value in (KEY, "47", "Ada"))


def test_an_error_of_cdclake_without_a_key_is_passed_on() -> None:
    error = ComponentFailed("the stream is 470 s late", "wait")
    assert redacted(error, [("47",)]) is error


def backend(**plan: Any) -> DeployedErasureBackend:
    made = Plan(name="shop", source_database="d", lake_database="l", **{"tables": (), **plan})
    arguments = {"control": "s3://state/control", "JOB_NAME": JOB}
    return DeployedErasureBackend(made, arguments, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("plan", [{"tables": (TABLE,), "mode": "scheduled"}, {}])
def test_a_stream_that_is_not_kept_is_not_ended(s3: Any, plan: dict[str, Any]) -> None:
    backend(**plan).restart_stream()
    assert ObjectStore("s3://state/control").read(naming.STREAM_ORDER) is None


def test_each_restart_of_a_stream_is_another_order(s3: Any) -> None:
    control, orders = ObjectStore("s3://state/control"), []
    control.write(naming.STREAM_ORDER, {"deployment": "d1"})
    for _ in range(2):
        backend(tables=(TABLE,)).restart_stream()
        stored = control.read(naming.STREAM_ORDER)
        assert stored is not None and stored.content["deployment"] == "d1"
        orders.append(stored.content["restart"])
    assert len(set(orders)) == 2


def test_a_stream_without_an_order_is_ended(s3: Any) -> None:
    backend(tables=(TABLE,)).restart_stream()
    stored = ObjectStore("s3://state/control").read(naming.STREAM_ORDER)
    assert stored is not None and stored.content["deployment"] is None


def test_another_job_of_the_deployment_is_run_to_its_end(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish, glue = "shop-dev-publish_hudi", boto3.client("glue")
    glue.create_job(
        Name=publish, Role="r", Command={"Name": "glueetl", "ScriptLocation": "s3://state/x.py"}
    )
    state_manager.set_transition("glue::job_run", {"progression": "manual", "times": 3})
    other = glue.start_job_run(JobName=publish)["JobRunId"]
    control, pauses = ObjectStore("s3://state/control"), []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        glue.get_job_run(JobName=publish, RunId=other)
        for each in glue_backends["123456789012"]["eu-west-1"].jobs[publish].job_runs:
            if given := each.arguments:
                report = {"ok": True, "tables": [given["--tables"]]}
                control.write(naming.report_name(given["--run"]), report)

    monkeypatch.setattr(f"{RUNS}.time.sleep", pause)
    report = backend().run_job(naming.PUBLISH_JOB, ["a_hudi", "b_hudi"])
    assert report == {"ok": True, "tables": ["a_hudi,b_hudi"]}
    assert len(pauses) > 1


def test_a_run_without_a_report_is_a_failure(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "shop-dev-poll_tables"
    boto3.client("glue").create_job(
        Name=name, Role="r", Command={"Name": "glueetl", "ScriptLocation": "s3://state/x.py"}
    )
    monkeypatch.setattr(f"{RUNS}.time.sleep", lambda _: None)
    with pytest.raises(ComponentFailed, match="poll_tables ended as SUCCEEDED without a report"):
        backend().run_job(naming.POLL_JOB, ["t"])
