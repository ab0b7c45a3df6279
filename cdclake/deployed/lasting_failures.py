"""Failures of a deployment that may last longer than their alarms are on.

An alarm turns off after an hour without a new failure: the table stays stale until the next
scheduled run, and rows are missing until they are redriven.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlparse

from cdclake import naming
from cdclake.deployed.deployed_lake import DeployedLake
from cdclake.jobs.control.store import ObjectStore
from cdclake.redrive.objects import KINDS, error_prefix
from cdclake.scheduled_runs import scheduled_runs

_THREADS = 8


def failed_runs(lake: DeployedLake) -> dict[str, str]:
    """Return the job of each scheduled run that has failed since it last succeeded."""
    jobs = scheduled_runs(lake.plan)
    with ThreadPoolExecutor(_THREADS) as pool:
        reports = pool.map(lake.control.read, map(naming.report_name, jobs))
        failed = [report is not None and not report.content["ok"] for report in reports]
    return {
        run: job for (run, job), is_failed in zip(jobs.items(), failed, strict=True) if is_failed
    }


def failed_records(lake: DeployedLake) -> list[str]:
    """Return the oldest folder of each kind of records that Firehose could not deliver."""
    folder = error_prefix(lake.plan)
    if not folder:
        return []
    bucket = f"s3://{urlparse(lake.arguments['--control']).netloc}"
    stored = ObjectStore(bucket)
    oldest = [next(stored.names_from(f"{folder}/{kind}/"), None) for kind in KINDS]
    return [f"{bucket}/{name.rpartition('/')[0]}/" for name in oldest if name is not None]
