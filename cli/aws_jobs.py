"""The deployed jobs, started from here: Glue runs them, the report comes from the state bucket."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    ProfileNotFound,
)

from cdclake import naming
from cdclake.config.deployment import Deployment, load_deployment
from cdclake.errors import CdcError, ComponentFailed, InputError, NotRunning

_POLL_S = 10.0
_ENDED = {"SUCCEEDED", "FAILED", "STOPPED", "TIMEOUT", "ERROR", "EXPIRED"}
_WHERE = "AWS_PROFILE and AWS_REGION say which account and region"
_NOBODY = (NoCredentialsError, NoRegionError, PartialCredentialsError, ProfileNotFound)


class DeployedJob:
    """One job of the deployment that a pipeline file and an environment name."""

    def __init__(self, file: Path, environment: str | None, job: str) -> None:
        """InvalidPipeline or InputError if the file or the environment is not as it must be."""
        self._deployment: Deployment = load_deployment(file, environment)
        self.name = naming.glue_job_name(self._deployment.prefix, job)
        with self._explained("reach Glue for"):
            self._glue = boto3.client("glue")

    def run(self, tables: list[str], **more: str) -> dict[str, Any]:
        """Run it over these tables, or all of them, to its end; the report that it wrote.

        `more`: further arguments of the job, by name.
        """
        chosen = [self._deployment.plan.table(table, of="file").name for table in tables]
        run = uuid.uuid4().hex[:8]
        arguments = {"--run": run, **{f"--{name}": value for name, value in more.items()}}
        if chosen:
            arguments["--tables"] = ",".join(chosen)
        run_id = self.start(arguments)
        state = self._await_end(run_id)
        report = self._report(run)
        if report is None:
            raise ComponentFailed(
                f"{self.name} ended as {state} before its report",
                f"read the logs of the run {run_id} in Glue's console",
                component=self.name,
            )
        return {**report, "job_run_id": run_id}

    def start(self, arguments: dict[str, str]) -> str:
        """Start a run, and leave it alone; its id."""
        with self._explained("start"):
            started = self._glue.start_job_run(JobName=self.name, Arguments=arguments)
        return str(started["JobRunId"])

    def _await_end(self, run_id: str) -> str:
        while True:
            with self._explained(f"follow the run {run_id}, which goes on without us, of"):
                run = self._glue.get_job_run(JobName=self.name, RunId=run_id)["JobRun"]
            if run["JobRunState"] in _ENDED:
                return str(run["JobRunState"])
            time.sleep(_POLL_S)

    def _report(self, run: str) -> dict[str, Any] | None:
        """What the job wrote; its own arguments say where."""
        from glue_jobs.runtime.objects import ObjectStore

        with self._explained("read the report of"):
            job = self._glue.get_job(JobName=self.name)["Job"]
            stored = ObjectStore(job["DefaultArguments"]["--control"]).read(naming.report_name(run))
        return stored.content if stored else None

    @contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        """Whatever AWS or its client says to a call, in our words and with what to do."""
        try:
            yield
        except _NOBODY as error:
            raise InputError(f"could not {doing} {self.name}: {error}", _WHERE) from None
        except ClientError as error:
            raise self._refused(doing, error) from None
        except BotoCoreError as error:
            remedy = "see whether this machine reaches AWS, then run this again"
            raise self._failed(doing, error, remedy) from None

    def _refused(self, doing: str, error: ClientError) -> CdcError:
        code = error.response["Error"]["Code"]
        if code == "EntityNotFoundException":
            return NotRunning(
                f"there is no job {self.name} in this account and region",
                f"deploy it, or name another --file and --environment; {_WHERE}",
            )
        if code == "ConcurrentRunsExceededException":
            return ComponentFailed(
                f"{self.name} runs already", "wait for its end, then run this again", self.name
            )
        if code.startswith("AccessDenied"):
            return self._failed(doing, error, f"sign in as somebody who may; {_WHERE}")
        return self._failed(doing, error, "read what AWS says, then run this again")

    def _failed(self, doing: str, error: Exception, remedy: str) -> ComponentFailed:
        return ComponentFailed(f"could not {doing} {self.name}: {error}", remedy, self.name)
