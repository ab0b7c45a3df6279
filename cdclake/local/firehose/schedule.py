"""Schedule of the apply job for tables that Firehose delivers; on AWS EventBridge runs it."""

from __future__ import annotations

import logging
import re
import subprocess
import threading
from collections.abc import Callable, Sequence

from cdclake import naming
from cdclake.jobs.control.leases import Leases
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.spark_jobs import RunningJob, start_job

log = logging.getLogger("cdclake.firehose")

CRON_INTERVAL_S = 300.0  # replaces any cron expression
_UNITS = {"minute": 60.0, "hour": 3600.0, "day": 86400.0}


def seconds_between(schedule: str) -> float:
    """Return the pause between runs for an EventBridge schedule.

    >>> seconds_between("rate(2 hours)"), seconds_between("cron(0 3 * * ? *)")
    (7200.0, 300.0)
    """
    rate = re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", schedule)
    return CRON_INTERVAL_S if rate is None else int(rate[1]) * _UNITS[rate[2]]


class ApplySchedule:
    """Runs of the job, each after new commits to the changelogs of its tables."""

    def __init__(
        self, lake: LocalLake, tables: Sequence[str], wait_s: float, commits: Callable[[], int]
    ) -> None:
        self._lake, self._tables = lake, ",".join(tables)
        self._wait_s, self._commits = wait_s, commits

    def run(self, stop: threading.Event) -> None:
        """Run the job on schedule until `stop`, which also kills a running job.

        The next run applies what that one leaves. A previous process left no running job, but
        possibly its leases.
        """
        Leases(self._lake.control, naming.APPLY_JOB).abandon_earlier_runs()
        applied = -1
        while not stop.wait(self._wait_s):
            commits = self._commits()
            if commits == applied:
                continue
            job = start_job(self._lake, naming.APPLY_JOB, {"tables": self._tables})
            if _ended_well(job, stop):
                applied = commits


def _ended_well(job: RunningJob, stop: threading.Event) -> bool:
    try:
        while not stop.is_set():
            try:
                code = job.process.wait(0.5)
            except subprocess.TimeoutExpired:
                continue
            log.info("the apply job exited with %d", code)
            return code == 0
    finally:
        job.process.kill()
    return False
