"""Jobs of the deployment that another one of its jobs runs to their end."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import boto3

from cdclake import naming
from cdclake.errors import ComponentFailed
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.runtime.glue_runs import run_to_end


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentJobs:
    """Glue jobs of a deployment, by the prefix of their names, for the job `starter`."""

    prefix: str
    starter: str
    control: ObjectStore

    def run_over(self, job: str, tables: Sequence[str]) -> dict[str, Any]:
        """Run the job over these tables to its end, and return its report.

        Raise ComponentFailed if it writes none.
        """
        run = f"{self.starter}-{uuid.uuid4().hex[:8]}"
        name = naming.glue_job_name(self.prefix, job)
        arguments = {"--run": run, "--tables": ",".join(tables)}
        state = run_to_end(boto3.client("glue"), name, arguments)
        report = self.control.read(naming.report_name(run))
        if report is None:
            raise ComponentFailed(
                f"{name} ended as {state} without a report", "read its log", component=job
            )
        return report.content

    def run_stream(self) -> None:
        """Run a scheduled stream once: it reads the available records and ends.

        Raise ComponentFailed if the run fails.
        """
        name = naming.glue_job_name(self.prefix, naming.STREAM_JOB)
        state = run_to_end(boto3.client("glue"), name, {})
        if state != "SUCCEEDED":
            raise ComponentFailed(
                f"{name} ended as {state}", "read its log", component=naming.STREAM_COMPONENT
            )
