"""`status --target aws` after the alarms of failed runs and of undelivered rows are off."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.backends import get_backend
from moto.core.models import DEFAULT_ACCOUNT_ID

from cdclake.cli import main as command
from tests.unit.config.pipelines import VALID
from tests.unit.deployed.stored_lake import DELIVERED, PREFIX

DERIVED = """\
derived:
  by_day:
    sql: SELECT order_id, note FROM orders_current
    key: [order_id]
    schedule: cron(0 2 * * ? *)
"""


@pytest.fixture
def status(capsys: Any, tmp_path: Path, deployed: Any) -> Any:
    file = tmp_path / "p.yaml"
    file.write_text(f"{VALID}{DELIVERED}{DERIVED}environments: {{dev: {{}}}}\n")
    boto3.client("glue").start_job_run(JobName=f"{PREFIX}-stream_changes")

    def answer() -> dict[str, Any]:
        where = ("--target", "aws", "--file", str(file), "--environment", "dev")
        with pytest.raises(SystemExit):
            command.main(("status", *where, "--json"))
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    return answer


def end_run(job: str, state: str, **arguments: str) -> None:
    """Have Glue know a run that has just ended; moto lists the oldest first, Glue the newest."""
    boto3.client("glue").start_job_run(
        JobName=f"{PREFIX}-{job}", Arguments={f"--{name}": v for name, v in arguments.items()}
    )
    runs = get_backend("glue")[DEFAULT_ACCOUNT_ID]["eu-west-1"].jobs[f"{PREFIX}-{job}"].job_runs
    runs.insert(0, runs.pop())
    runs[0].status = state


def create_job(job: str) -> None:
    boto3.client("glue").create_job(
        Name=f"{PREFIX}-{job}",
        Role="r",
        Command={"Name": "glueetl", "ScriptLocation": "s3://state/x.py"},
        ExecutionProperty={"MaxConcurrentRuns": 2},
    )


BY_DAY = {"tables": "by_day", "run": "refresh_derived-by_day"}


@pytest.mark.parametrize(
    "repair",
    [BY_DAY, {"tables": "other,by_day", "run": "5c1d"}, {"run": "5c1d"}],
    ids=["scheduled", "by hand", "by hand over all tables"],
)
@pytest.mark.parametrize("state", ["FAILED", "TIMEOUT"])
def test_status_lists_failed_runs_until_one_succeeds(
    status: Any, state: str, repair: dict[str, str]
) -> None:
    create_job("refresh_derived")
    end_run("refresh_derived", "SUCCEEDED", **BY_DAY)
    end_run("refresh_derived", state, **BY_DAY)
    end_run("refresh_derived", "FAILED", tables="by_day", run="77aa")
    end_run("refresh_derived", "SUCCEEDED", tables="other", run="refresh_derived-other")
    end_run("refresh_derived", "RUNNING", **BY_DAY)
    found = status()
    assert (found["health"], found["failed_runs"]) == ("attention", ["refresh_derived-by_day"])
    end_run("refresh_derived", "SUCCEEDED", **repair)
    assert (status()["health"], status()["failed_runs"]) == ("healthy", [])


def test_failed_runs_over_all_tables_need_a_run_over_all(status: Any) -> None:
    create_job("maintain_tables")
    end_run("maintain_tables", "FAILED")
    end_run("maintain_tables", "SUCCEEDED", tables="orders", run="5c1d")
    end_run("maintain_tables", "SUCCEEDED", sample="100", run="5c1e")
    assert status()["failed_runs"] == ["maintain_tables"]
    end_run("maintain_tables", "SUCCEEDED", run="5c1f")
    assert status()["failed_runs"] == []


def test_attention_names_the_command_that_shows_the_failure(
    status: Any, capsys: Any, tmp_path: Path
) -> None:
    create_job("maintain_tables")
    end_run("maintain_tables", "FAILED")
    yesterday = datetime.now(UTC) - timedelta(days=1)
    jobs = get_backend("glue")[DEFAULT_ACCOUNT_ID]["eu-west-1"].jobs
    jobs[f"{PREFIX}-maintain_tables"].job_runs[0].started_on = yesterday
    group, logs = f"/aws-glue/jobs/{PREFIX}/maintain_tables/error", boto3.client("logs")
    logs.create_log_group(logGroupName=group)
    logs.create_log_stream(logGroupName=group, logStreamName="jr_1")
    line = {"timestamp": int(yesterday.timestamp() * 1000), "message": "no space left"}
    logs.put_log_events(logGroupName=group, logStreamName="jr_1", logEvents=[line])
    [attention] = status()["attention"]
    named = re.search("`cdclake (.*)`", attention)
    assert attention.startswith("the scheduled job maintain_tables ended as FAILED; ") and named
    where = ("--file", str(tmp_path / "p.yaml"), "--environment", "dev")
    with pytest.raises(SystemExit):
        command.main((*named[1].split(), *where))
    assert "no space left" in capsys.readouterr().out


def test_status_lists_undelivered_records_until_they_are_moved(status: Any) -> None:
    s3, folder = boto3.client("s3"), "firehose/iceberg-failed/2026/11"
    for name in (f"{folder}/22/a", f"{folder}/23/b", "firehose/redriven/iceberg-failed/2026/1/1/c"):
        s3.put_object(Bucket="state", Key=name, Body=b"")
    found = status()
    assert (found["health"], found["failed_records"]) == ("attention", [f"s3://state/{folder}/22/"])
    assert "see `cdclake runbook redrive`" in found["attention"][0]
    set_aside = {"Bucket": "state", "Key": f"firehose/redriven/{folder[9:]}/22/a"}
    s3.copy_object(**set_aside, CopySource=f"state/{folder}/22/a")
    for name in (f"{folder}/22/a", f"{folder}/23/b"):
        s3.delete_object(Bucket="state", Key=name)
    assert (status()["health"], status()["failed_records"]) == ("healthy", [])
