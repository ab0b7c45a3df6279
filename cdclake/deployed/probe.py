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
    checks = [Check(**check) for check in report["checks"]]
    return [*checks, _logged(job, str(report["job_run_id"]))]


def _logged(job: DeployedJob, run_id: str) -> Check:
    """Look for the run's log where `cdclake logs` reads; without it, ask Glue for its group."""
    groups = log_groups(job.deployment)[naming.PROBE_JOB]
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
            f"run {run_id} has no log in {', '.join(missing)}; Glue names the group"
            f" {_group_of(job.name, run_id) or 'of its log nowhere'}",
            "report the name, or that of the log group in CloudWatch with this run among those that"
            f" begin with /aws-glue/ and contain {job.deployment.prefix}. Until then the jobs have"
            " no logs, and the reason of a failure is the ErrorMessage of its run, as in `aws glue"
            f" get-job-run --job-name {job.name} --run-id {run_id}`",
        )
    return passed("logs", f"in {', '.join(groups)}")


def _group_of(job: str, run_id: str) -> str | None:
    with explained(job, f"look at the run {run_id} of"):
        run = boto3.client("glue").get_job_run(JobName=job, RunId=run_id)["JobRun"]
    name: str | None = run.get("LogGroupName")
    return name
