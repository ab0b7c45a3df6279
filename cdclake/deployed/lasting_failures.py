"""Failures of a deployment that may last longer than their alarms are on.

An alarm turns off an hour or a day after the last failure. The table may stay stale for longer,
and rows are missing until they are redriven.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlparse

import boto3

from cdclake import naming
from cdclake.deployed.aws_calls import explained
from cdclake.deployed.deployed_lake import DeployedLake
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.runtime.glue_runs import ENDED
from cdclake.redrive.objects import KINDS, error_prefix
from cdclake.scheduled_runs import scheduled_runs, table_run

_THREADS = 8
_MAX_RUNS_PER_JOB = 10_000
_RUNS_PER_PAGE = 200  # at most


@dataclass(frozen=True, slots=True)
class FailedRun:
    """Scheduled run that ended without success."""

    job: str
    state: str  # of Glue: FAILED, TIMEOUT and so on
    started_at: datetime


def failed_runs(lake: DeployedLake) -> dict[str, FailedRun]:
    """Return the newest run of each schedule if it failed and no later run repaired it, by name.

    A later run of the same job for the schedule's tables, or for all, repairs it if it succeeds.
    """
    jobs = scheduled_runs(lake.plan)
    glue, prefix = boto3.client("glue"), lake.deployment.prefix

    def of_job(job: str) -> dict[str, FailedRun]:
        return _failed_runs(glue, prefix, job, {run for run in jobs if jobs[run] == job})

    with ThreadPoolExecutor(_THREADS) as pool:
        found = {run: each for of in pool.map(of_job, {*jobs.values()}) for run, each in of.items()}
    return {run: found[run] for run in jobs if run in found}


def _failed_runs(glue: Any, prefix: str, job: str, schedules: set[str]) -> dict[str, FailedRun]:
    undecided, failed = {*schedules}, dict[str, FailedRun]()
    for run in _ended_runs(glue, naming.glue_job_name(prefix, job)):
        arguments = run.get("Arguments", {})
        scheduled = arguments.get("--run", job)
        if run["JobRunState"] == "SUCCEEDED":
            undecided -= _repaired(job, arguments, undecided)
        elif scheduled in undecided:
            undecided.remove(scheduled)
            failed[scheduled] = FailedRun(job, run["JobRunState"], run["StartedOn"])
        if not undecided:
            break
    return failed


def _ended_runs(glue: Any, name: str) -> Iterator[dict[str, Any]]:
    """Yield the ended runs of a job, the newest first; none if the job is not deployed."""
    pages = glue.get_paginator("get_job_runs").paginate(
        JobName=name,
        PaginationConfig={"MaxItems": _MAX_RUNS_PER_JOB, "PageSize": _RUNS_PER_PAGE},
    )
    with explained(name, "list the runs of"):
        try:
            for page in pages:
                yield from (run for run in page["JobRuns"] if run["JobRunState"] in ENDED)
        except glue.exceptions.EntityNotFoundException:
            return


def _repaired(job: str, arguments: Mapping[str, str], schedules: set[str]) -> set[str]:
    """Return the schedules whose tables a run of the job covered; a sample covers none."""
    if "--sample" in arguments:
        return set()
    if "--tables" not in arguments:
        return schedules
    return schedules & {table_run(job, table) for table in arguments["--tables"].split(",")}


def failed_records(lake: DeployedLake) -> list[str]:
    """Return the oldest folder of each kind of records that Firehose could not deliver."""
    folder = error_prefix(lake.plan)
    if not folder:
        return []
    bucket = f"s3://{urlparse(lake.arguments['--control']).netloc}"
    stored = ObjectStore(bucket)
    oldest = [next(stored.names_from(f"{folder}/{kind}/"), None) for kind in KINDS]
    return [f"{bucket}/{name.rpartition('/')[0]}/" for name in oldest if name is not None]
