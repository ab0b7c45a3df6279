"""`status`, `sql`, `pause`, `resume` and `logs` with --target aws, against moto."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
import requests

from cdclake.cli import main as command
from cdclake.cli import metrics
from cdclake.cli.page_answers import deployed_answers
from cdclake.cli.target import Target
from cdclake.control_objects import PAUSE, PROGRESS, VERIFIED
from cdclake.errors import InputError
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_life import Stopped
from cdclake.metrics import alarm_topic_name
from tests.unit.config.pipelines import VALID
from tests.unit.deployed.stored_lake import DELIVERED, POLLED, PREFIX, publish, put

Run = Callable[..., tuple[object, str]]


@pytest.fixture
def run(capsys: Any, tmp_path: Any) -> Run:
    file = tmp_path / "p.yaml"
    file.write_text(VALID + "environments: {dev: {}}\n")

    def run_verb(*words: str, json_output: bool = True) -> tuple[object, str]:
        where = ("--target", "aws", "--file", str(file), "--environment", "dev")
        with pytest.raises(SystemExit) as caught:
            command.main((*words, *where, *(["--json"] if json_output else [])))
        return caught.value.code, capsys.readouterr().out

    return run_verb


def test_a_lake_that_runs_is_healthy(run, deployed, without_read):
    boto3.client("glue").start_job_run(JobName=f"{PREFIX}-stream_changes")
    put(VERIFIED, {"orders": {"at": "2026-11-26T05:00:00+00:00", "equal": True}})
    publish("Lag", 7)
    code, out = run("status")
    told = json.loads(out)
    assert (code, told["ok"], told["health"], told["attention"]) == (0, True, "healthy", [])
    assert told["lag_events"] == 7
    [table] = told["tables"]
    assert (table["state_rows"], table["changes_rows"], table["quarantined"]) == (100, 300, 0)
    assert table["last_verified"] == {"at": "2026-11-26T05:00:00+00:00", "equal": True}
    assert {part["name"]: part["state"] for part in told["components"]} == {
        "stream": "running",
        "connect": "running",
    }
    _, text = run("status", "-v", json_output=False)
    shown = "orders streaming 100 300 - - 0 equal at 2026-11-26"
    assert shown in " ".join(text.split())


def test_a_stopped_table_and_an_alarm_need_attention(run, deployed):
    boto3.client("glue").start_job_run(JobName=f"{PREFIX}-stream_changes")
    progress = Progress()
    progress.table("orders").life = Stopped(reason="too many refused events")
    put(PROGRESS, progress.to_stored())
    cloudwatch = boto3.client("cloudwatch")
    ours = [f"{PREFIX}-{name}" for name in ("stopped-table", "declared-connector-2", "size")]
    others = dict.fromkeys(("shop-prod-lag", f"{PREFIX}-two-lag"), f"{PREFIX}-two")
    for name, prefix in (dict.fromkeys(ours, PREFIX) | others).items():
        topic = f"arn:aws:sns:eu-west-1:123456789012:{alarm_topic_name(prefix)}"
        cloudwatch.put_metric_alarm(
            AlarmName=name, Namespace="n", MetricName="m", Period=60, EvaluationPeriods=1,
            AlarmActions=["arn:aws:sns:eu-west-1:123456789012:other", topic],
            Threshold=0, ComparisonOperator="GreaterThanThreshold", Statistic="Sum",
        )  # fmt: skip
        cloudwatch.set_alarm_state(AlarmName=name, StateValue="ALARM", StateReason="test")
    code, out = run("status")
    told = json.loads(out)
    assert (code, told["health"]) == (1, "attention")
    assert told["alarms"] == ["declared-connector-2", "size", "stopped-table"]
    assert [line for line in told["attention"] if line.startswith("alarm ")] == [
        "alarm declared-connector-2 is on: see `cdclake runbook declared-connector`",
        "alarm size is on: see its description in CloudWatch",  # of a stack of the user
        "alarm stopped-table is on: see `cdclake runbook stopped-table`",
    ]
    assert told["tables"][0]["state"] == "stopped"
    assert "too many refused events" in "".join(told["attention"])


def test_only_tables_of_the_stream_are_paused(run, deployed, tmp_path):
    (tmp_path / "p.yaml").write_text(f"{VALID}{DELIVERED}{POLLED}environments: {{dev: {{}}}}\n")
    tables = {each["table"]: each["did"] for each in json.loads(run("pause")[1])["tables"]}
    assert tables == {
        "orders": "paused",
        "clicks": "nothing: Firehose delivers it",
        "rates": "nothing: polls read it",
    }


def test_components_have_every_key_of_the_contract(run, deployed):
    keys = {"name", "pid", "state", "port", "log"}
    parts = json.loads(run("status")[1])["components"]
    assert [part["name"] for part in parts] == ["stream", "connect"]
    assert all(part.keys() >= keys for part in parts)
    assert {(part["pid"], part["port"]) for part in parts} == {(None, None)}


def test_freshness_of_a_streamed_table_is_the_age_of_the_newest_heartbeat(run, deployed, tmp_path):
    (tmp_path / "p.yaml").write_text(f"{VALID}{DELIVERED}{POLLED}environments: {{dev: {{}}}}\n")

    def freshness() -> dict[str, float | None]:
        tables = json.loads(run("status")[1])["tables"]
        return {table["table"]: table["freshness_s"] for table in tables}

    unknown: dict[str, float | None] = {"orders": None, "clicks": None, "rates": None}
    assert freshness() == unknown
    progress = Progress()
    progress.table("orders")
    put(PROGRESS, progress.to_stored())
    assert freshness() == unknown  # no heartbeat yet
    progress.heartbeat_committed_us = int((time.time() - 40) * 1_000_000)
    progress.table("clicks")
    put(PROGRESS, progress.to_stored())
    found = freshness()
    assert found.pop("orders") == pytest.approx(40, abs=20)
    assert found == {"clicks": None, "rates": None}
    progress.table("orders").life = Stopped(reason="too many refused events")
    put(PROGRESS, progress.to_stored())
    assert freshness() == unknown


@pytest.mark.parametrize(("behind_since", "age_s"), [(None, 0), (-40, 40), (5, 0)])
def test_state_age_is_never_negative(run, deployed, behind_since, age_s):
    """The clock of the job that notes it may be ahead of this one."""
    progress = Progress()
    noted = time.time() + behind_since if behind_since else 0.0
    progress.table("orders").state_behind_since = noted
    put(PROGRESS, progress.to_stored())
    [table] = json.loads(run("status")[1])["tables"]
    assert table["state_age_s"] == pytest.approx(age_s, abs=20 if age_s else 0)


def test_state_age_is_unknown_for_states_that_the_stream_does_not_apply(run, deployed, tmp_path):
    (tmp_path / "p.yaml").write_text(f"{VALID}{DELIVERED}{POLLED}environments: {{dev: {{}}}}\n")
    progress = Progress()
    progress.table("orders")  # as the stream notes a table with `apply: scheduled`
    put(PROGRESS, progress.to_stored())
    ages = {
        table["table"]: table["state_age_s"] for table in json.loads(run("status")[1])["tables"]
    }
    assert ages == {"orders": None, "clicks": None, "rates": 0.0}


def test_status_of_a_stream_that_has_ended_has_no_old_lag_or_freshness(run, deployed):
    """It publishes no longer, and its last figures are not those of now."""
    for name, value in (("Lag", 7), ("Freshness", 4)):
        publish(name, value, age_s=600)
    put(PROGRESS, Progress(heartbeat_committed_us=int((time.time() - 1500) * 1e6)).to_stored())
    told = json.loads(run("status")[1])
    assert told["lag_events"] is None
    assert told["freshness_s"] == pytest.approx(1500, abs=20)


def test_metrics_of_a_deployment_are_the_figures_of_its_status(run, deployed):
    boto3.client("glue").start_job_run(JobName=f"{PREFIX}-stream_changes")
    publish("Lag", 7)
    code, text = run("metrics", json_output=False)
    lines = text.splitlines()
    assert code == 0
    for expected in (
        "cdclake_healthy 1.0",
        'cdclake_component_up{component="stream"} 1.0',
        'cdclake_table_state_rows{table="orders"} 100.0',
        "cdclake_lag_events 7.0",
    ):
        assert expected in lines
    assert not any(line.startswith("cdclake_freshness_seconds") for line in lines)  # unknown


def test_what_does_not_run_is_down(run, deployed):
    deployed[0]["connectorState"] = "FAILED"
    code, out = run("status")
    told = json.loads(out)
    assert (code, told["ok"], told["health"]) == (4, False, "down")
    assert told["attention"][:2] == ["stream does not run", "connect does not run"]
    assert (told["error"]["message"], told["error"]["component"]) == (
        "down: stream, connect",
        "stream",
    )


def test_a_paused_stream_is_not_down(run, deployed):
    run("pause")
    code, out = run("status")
    told = json.loads(out)
    assert (code, told["health"], told["paused"]) == (0, "healthy", True)
    assert told["components"][0]["state"] == "paused"
    assert "paused: `cdclake resume` goes on" in run("status", json_output=False)[1]


def test_a_stream_that_the_file_turns_off_is_not_down(run, deployed, tmp_path):
    file = tmp_path / "p.yaml"
    file.write_text(VALID + "environments: {dev: {aws: {stream: off}}}\n")
    code, out = run("status")
    told = json.loads(out)
    assert (code, told["health"], told["down"]) == (0, "healthy", [])
    assert told["components"][0]["state"] == "off"


def test_a_deployment_that_is_not_there_is_said_to_be_missing(run):
    code, out = run("status")
    assert (code, json.loads(out)["error"]["code"]) == (3, "not_running")


def test_pause_and_resume_leave_word_for_the_keeper(run, deployed):
    code, out = run("pause")
    assert (code, json.loads(out)) == (
        0,
        {"ok": True, "tables": [{"table": "orders", "did": "paused"}]},
    )
    s3 = boto3.client("s3")
    order = json.loads(s3.get_object(Bucket="state", Key="control/stream.json")["Body"].read())
    assert order == {"deployment": None}
    assert s3.head_object(Bucket="state", Key=f"control/{PAUSE}")
    resumed = {"ok": True, "tables": [{"table": "orders", "error": None, "did": "resumed"}]}
    assert json.loads(run("resume")[1]) == {**resumed, "was_paused": True}
    assert json.loads(run("resume")[1])["was_paused"] is False


@pytest.mark.parametrize("mode", ["on", "off"])
def test_resume_writes_the_requests_of_all_stopped_tables(run, deployed, tmp_path, mode):
    """No job does, which another run of it would keep away; one table is Firehose's."""
    environment = f"environments: {{dev: {{aws: {{stream: '{mode}'}}}}}}\n"
    (tmp_path / "p.yaml").write_text(f"{VALID}{DELIVERED}{POLLED}{environment}")
    progress = Progress()
    for name in ("orders", "clicks"):
        progress.table(name).life = Stopped(reason="why")
    put(PROGRESS, progress.to_stored())
    code, out = run("resume")
    done = {each["table"]: each["did"] for each in json.loads(out)["tables"]}
    asked = {"orders": "asked to rejoin", "clicks": "asked to rejoin", "rates": "flows"}
    assert (code, done) == (0, asked)
    stored = boto3.client("s3").list_objects_v2(Bucket="state", Prefix="control/resume/")
    names = [each["Key"] for each in stored["Contents"]]
    assert names == ["control/resume/clicks.json", "control/resume/orders.json"]


def test_logs_of_all_components_are_merged_by_time(run, deployed):
    logs = boto3.client("logs")
    at = int(datetime.now(UTC).timestamp() * 1000)
    for group, shift, text in (
        (f"/aws/vendedlogs/{PREFIX}/connect", 2, "second"),
        (f"/aws-glue/jobs/{PREFIX}/stream_changes/output", 1, "first"),
        (f"/aws-glue/jobs/{PREFIX}/verify_tables/error", 3, "third"),
    ):
        logs.create_log_group(logGroupName=group)
        logs.create_log_stream(logGroupName=group, logStreamName="s")
        logs.put_log_events(
            logGroupName=group,
            logStreamName="s",
            logEvents=[{"timestamp": at - 10_000 + shift, "message": text}],
        )
    code, out = run("logs")
    lines = json.loads(out)["lines"]
    assert code == 0
    assert [(line["component"], line["text"]) for line in lines] == [
        ("stream", "first"),
        ("connect", "second"),
        ("verify_tables", "third"),
    ]
    [line] = json.loads(run("logs", "connect")[1])["lines"]
    assert line["text"] == "second"
    assert run("logs", "nothing")[0] == 2
    assert run("logs", "--since", "soon")[0] == 2


def test_a_followed_log_loses_no_late_line(run, deployed, monkeypatch):
    logs = boto3.client("logs")
    at = int(datetime.now(UTC).timestamp() * 1000) - 10_000
    groups = {part: f"/aws/vendedlogs/{PREFIX}/{part}" for part in ("connect", "kafka")}
    for group in groups.values():
        logs.create_log_group(logGroupName=group)
        logs.create_log_stream(logGroupName=group, logStreamName="s")

    def write(part: str, time: int, text: str) -> None:
        event = {"timestamp": time, "message": text}
        logs.put_log_events(logGroupName=groups[part], logStreamName="s", logEvents=[event])

    # What appears between two looks.
    later = iter([("kafka", at - 3000, "late"), ("connect", at, "tie")])

    def sleep(_: float) -> None:
        event = next(later, None)
        if event is None:
            raise KeyboardInterrupt
        write(*event)

    # Not `time.sleep` itself, which other threads of the test run call as well.
    monkeypatch.setattr("cdclake.log_line.time", SimpleNamespace(sleep=sleep))
    write("connect", at, "first")
    code, out = run("logs", "--follow")
    assert code == 0
    assert [json.loads(line)["text"] for line in out.splitlines()] == ["first", "late", "tie"]


def test_athena_answers_with_its_own_texts(run, deployed):
    answers = "http://motoapi.amazonaws.com/moto-api/static/athena/query-results"
    data = {"Data": [{"VarCharValue": "7"}]}
    columns = [{"Name": "n", "Type": "bigint"}]
    result: Any = {"rows": [{"Data": [{"VarCharValue": "n"}]}, data], "column_info": columns}
    requests.post(answers, json={"region": "eu-west-1", "results": [result]}, timeout=5)
    boto3.client("athena").create_work_group(
        Name=PREFIX,
        Configuration={"ResultConfiguration": {"OutputLocation": "s3://state/results"}},
    )
    code, out = run("sql", "SELECT count(*) AS n FROM orders", "--engine", "athena")
    told = json.loads(out)
    assert (code, told["rows"]) == (0, [["7"]])
    assert told["columns"] == [{"name": "n", "type": "bigint"}]


def test_athena_needs_a_deployment(capsys):
    with pytest.raises(SystemExit) as caught:
        command.main(("sql", "SELECT 1", "--engine", "athena"))
    assert caught.value.code == 2
    assert "needs --target aws" in capsys.readouterr().err


def test_the_page_shows_the_deployment(run, deployed, tmp_path):
    boto3.client("glue").start_job_run(JobName=f"{PREFIX}-stream_changes")
    progress = Progress()
    progress.table("orders").life = Stopped(reason="too many refused events")
    put(PROGRESS, progress.to_stored())
    publish("Lag", 7)
    answers = deployed_answers(tmp_path / "p.yaml", "dev")
    shown = answers["overview"]({})
    assert (shown["target"], shown["health"]) == ("aws", "attention")
    [table] = shown["tables"]
    assert table["marks"] == ["stopped", "unverified", "error"]
    assert {hop["hop"]: hop["lag"] for hop in shown["hops"]}["kafka"] == 7
    [job] = answers["jobs"]({})["jobs"]
    assert job["job"] == "stream_changes" and job["last_run"] is not None
    found = answers["table"]({"table": ["orders"]})
    assert found["columns"][0]["key"] and found["file"].endswith("p.yaml")
    assert found["columns"][0]["line"] is not None
    with pytest.raises(InputError, match="nothing"):
        answers["table"]({"table": ["nothing"]})
    with pytest.raises(InputError, match="table is missing"):
        answers["table"]({})


ADDED = "  public.added:\n    key: [id]\n    columns: {id: bigint}\n"


def test_servers_follow_a_deployment_that_adds_a_table(run, deployed, tmp_path):
    boto3.client("glue").start_job_run(JobName=f"{PREFIX}-stream_changes")
    file = tmp_path / "p.yaml"
    answers, read = deployed_answers(file, "dev"), metrics._status_of(Target.AWS, file, "dev")
    assert [table["table"] for table in read()["tables"]] == ["orders"]
    file.write_text(file.read_text().replace("tables:\n", f"tables:\n{ADDED}"))
    assert {table["table"] for table in read()["tables"]} == {"orders", "added"}
    assert answers["table"]({"table": ["added"]})["columns"][0]["line"] == 7
