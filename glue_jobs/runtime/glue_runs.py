"""Runs of Glue jobs: their states, and a run that another job waits for."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from cdclake.errors import ComponentFailed

ENDED = frozenset({"SUCCEEDED", "FAILED", "STOPPED", "TIMEOUT", "ERROR", "EXPIRED"})
_POLL_S = 10.0
_START_TIMEOUT_S = 3600.0  # scheduled runs of the job may be active, each for one table
# Runs of the job, or of all jobs in the account, which has a quota.
_BUSY = frozenset({"ConcurrentRunsExceededException", "ResourceNumberLimitExceededException"})


def run_to_end(glue: Any, job: str, arguments: Mapping[str, str]) -> str:
    """Start a run of the job as soon as Glue accepts one, wait for its end, and return its state.

    `glue` is boto3's client. Raise ComponentFailed if other runs leave no place for an hour.
    """
    run = _started(glue, job, dict(arguments))
    while (state := _state(glue, job, run)) not in ENDED:
        time.sleep(_POLL_S)
    return state


def _started(glue: Any, job: str, arguments: dict[str, str]) -> str:
    deadline = time.monotonic() + _START_TIMEOUT_S
    while True:
        try:
            return str(glue.start_job_run(JobName=job, Arguments=arguments)["JobRunId"])
        except ClientError as error:
            if error.response["Error"]["Code"] not in _BUSY:
                raise
            if time.monotonic() > deadline:
                raise ComponentFailed(
                    f"no run of {job} could start for {_START_TIMEOUT_S / 60:.0f} minutes: {error}",
                    "wait until other runs have ended, then run the command again",
                    component=job,
                ) from None
        time.sleep(_POLL_S)


def _state(glue: Any, job: str, run: str) -> str:
    return str(glue.get_job_run(JobName=job, RunId=run)["JobRun"]["JobRunState"])
