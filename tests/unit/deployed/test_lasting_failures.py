"""`status --target aws` after the alarms of failed runs and of undelivered rows are off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3
import pytest

from cdclake.cli import main as command
from cdclake.naming import report_name
from tests.unit.config.pipelines import VALID
from tests.unit.deployed.stored_lake import DELIVERED, PREFIX, put

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


def test_status_lists_scheduled_runs_that_failed_until_they_succeed(status: Any) -> None:
    put(report_name("maintain_tables"), {"ok": True, "tables": []})
    put(report_name("refresh_derived-by_day"), {"ok": False, "tables": []})
    put(report_name("refresh_derived-20261130"), {"ok": False, "tables": []})  # an operator's run
    found = status()
    assert (found["health"], found["failed_runs"]) == ("attention", ["refresh_derived-by_day"])
    assert found["attention"] == [
        "the scheduled job refresh_derived-by_day failed; `cdclake logs refresh_derived --target"
        " aws` shows why"
    ]
    put(report_name("refresh_derived-by_day"), {"ok": True, "tables": []})
    assert (status()["health"], status()["failed_runs"]) == ("healthy", [])


def test_status_lists_undelivered_records_until_they_are_redriven(status: Any) -> None:
    s3, folder = boto3.client("s3"), "firehose/iceberg-failed/2026/11"
    for name in (f"{folder}/22/a", f"{folder}/23/b", "firehose/redriven/iceberg-failed/2026/1/1/c"):
        s3.put_object(Bucket="state", Key=name, Body=b"")
    found = status()
    assert (found["health"], found["failed_records"]) == ("attention", [f"s3://state/{folder}/22/"])
    assert "see `cdclake runbook redrive`" in found["attention"][0]
    for name in (f"{folder}/22/a", f"{folder}/23/b"):
        s3.delete_object(Bucket="state", Key=name)
    assert (status()["health"], status()["failed_records"]) == ("healthy", [])
