"""The deployed probe job: what it found where the jobs will run, and where its logs went."""

from __future__ import annotations

from pathlib import Path

import boto3

from cdclake import naming
from cdclake.check import Check, failed, passed
from cdclake.deployed.aws_calls import explained
from cdclake.deployed.aws_jobs import DeployedJob
from cdclake.deployed.deployed_logs import log_groups


def run_probe(file: Path, environment: str | None) -> list[Check]:
    """Run the job to its end; return its checks, and one of its logs.

    Raises InputError if it is not deployed, and ComponentFailed if it ends without a report.
    """
    job = DeployedJob(file, environment, naming.PROBE_JOB)
    report = job.run([])
    groups = log_groups(job.deployment)[naming.PROBE_JOB]
    checks = [Check(**check) for check in report["checks"]]
    return [*checks, _logged(groups, str(report["job_run_id"]))]


def _logged(groups: list[str], run_id: str) -> Check:
    """Look for the run's log where its role may write, and where `cdclake logs` reads."""
    with explained(", ".join(groups), "read the log groups"):
        client = boto3.client("logs")
        missing = [
            group
            for group in groups
            if not client.describe_log_streams(logGroupName=group, logStreamNamePrefix=run_id)[
                "logStreams"
            ]
        ]
    if missing:
        return failed(
            "logs",
            f"run {run_id} has no log in {', '.join(missing)}",
            "look in the log groups that begin with /aws-glue/ for it, and report which it is",
        )
    return passed("logs", f"in {', '.join(groups)}")
