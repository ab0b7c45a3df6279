"""The deployed Glue jobs: start them, await them, read their report from the state bucket."""

from __future__ import annotations

import time
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import boto3

from cdclake import naming
from cdclake.activity import Advance, Sampler, step
from cdclake.config.deployment import Deployment, load_deployment
from cdclake.control_objects import REPLAY, RESYNC
from cdclake.deployed.aws_calls import check_jobs, explained
from cdclake.deployed_jobs import resolve_name
from cdclake.errors import ComponentFailed, InputError
from cdclake.job_advance import JobAdvance

_POLL_S = 10.0


class DeployedJob:
    """Glue job of the deployment for a pipeline file and an environment."""

    def __init__(self, file: Path, environment: str | None, job: str) -> None:
        """Raise InvalidPipeline or InputError if the file or the environment is invalid."""
        self.deployment: Deployment = load_deployment(file, environment)
        self._job = job
        self.name = naming.glue_job_name(self.deployment.prefix, job)
        with explained(self.name, "reach Glue for"):
            self._glue = boto3.client("glue")

    def run(self, tables: list[str], **more: str) -> dict[str, Any]:
        """Run the job for these tables, or all, to its end; return its report.

        Args:
            tables: Names of the tables; none for all.
            more: Other arguments of the job, by name.
        """
        plan = self.deployment.plan
        chosen = [resolve_name(self._job, plan, table, of="file") for table in tables]
        run = uuid.uuid4().hex[:8]
        arguments = {"--run": run, **{f"--{name}": value for name, value in more.items()}}
        if chosen:
            arguments["--tables"] = ",".join(chosen)
        run_id = self.start(arguments)
        with step(f"run {self.name} on AWS") as shown:
            state = self._await_end(run_id, Sampler(shown, partial(self._advance, run), _POLL_S))
        report = self._report(run)
        if report is None:
            raise ComponentFailed(
                f"{self.name} ended as {state} without a report",
                f"read the logs of run {run_id} in the Glue console",
                component=self.name,
            )
        return {**report, "job_run_id": run_id}

    def operate(self, verb: str, tables: list[str], **more: str) -> dict[str, Any]:
        """Run the verb for these tables.

        Raise InputError for a table that Firehose delivers, and if no stream answers the requests.
        """
        for table in tables:
            self.deployment.plan.streamed(table, of="file")
        if verb in (REPLAY, RESYNC):
            self.check_stream()
        return self.run(tables, verb=verb, **more)

    def check_stream(self) -> None:
        """Raise InputError if the deployment has no stream: the job would wait for its answer."""
        if self.deployment.aws.stream == "off":
            raise InputError(
                "the deployment has no stream, which carries out the request",
                "deploy it with `aws: {stream: on}`, then run the command again",
            )

    def start(self, arguments: dict[str, str]) -> str:
        """Start a run without waiting; return its id."""
        check_jobs(self.deployment)
        with explained(self.name, "start"):
            started = self._glue.start_job_run(JobName=self.name, Arguments=arguments)
        return str(started["JobRunId"])

    def _advance(self, run: str) -> Advance | None:
        stored = self._read(naming.advance_name(run))
        return None if stored is None else JobAdvance.shown(stored)

    def _await_end(self, run_id: str, sampler: Sampler) -> str:
        from cdclake.jobs.runtime.glue_runs import ENDED

        while True:
            with explained(self.name, f"follow the run {run_id} (which continues) of"):
                run = self._glue.get_job_run(JobName=self.name, RunId=run_id)["JobRun"]
            if run["JobRunState"] in ENDED:
                return str(run["JobRunState"])
            sampler.sample()
            time.sleep(_POLL_S)

    def _report(self, run: str) -> dict[str, Any] | None:
        """Return the report of the run."""
        return self._read(naming.report_name(run))

    def _read(self, name: str) -> dict[str, Any] | None:
        """Return a control object, from the location in the job's arguments."""
        from cdclake.jobs.control.store import ObjectStore

        with explained(self.name, "read the report of"):
            stored = ObjectStore(self.control_uri).read(name)
        return stored.content if stored else None

    @property
    def control_uri(self) -> str:
        """Location of the control objects; raises what boto3 raises."""
        job = self._glue.get_job(JobName=self.name)["Job"]
        return str(job["DefaultArguments"]["--control"])
