"""The newest run of each of a deployment's Glue jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
from botocore.exceptions import ClientError

from cdclake import naming
from cdclake.deployed.aws_calls import explained
from cdclake.deployed.deployed_lake import DeployedLake
from cdclake.deployed_jobs import JOBS


def newest_runs(lake: DeployedLake) -> list[dict[str, Any]]:
    """Return the jobs of the deployment that exist, each with its newest run."""
    return list(_runs(lake.deployment.prefix))


def _runs(prefix: str) -> Iterator[dict[str, Any]]:
    glue = boto3.client("glue")
    for job in JOBS:
        name = naming.glue_job_name(prefix, job)
        with explained(name, "list the runs of"):
            try:
                runs = glue.get_job_runs(JobName=name, MaxResults=1)["JobRuns"]
            except ClientError as error:
                if error.response["Error"]["Code"] != "EntityNotFoundException":
                    raise
                continue  # the pipeline declares nothing for this job
        newest = runs[0] if runs else {}
        yield {
            "job": job,
            "last_run": newest.get("StartedOn"),
            "ended_at": newest.get("CompletedOn"),
            "state": newest.get("JobRunState", "never started").lower(),
            "error": newest.get("ErrorMessage"),
        }
