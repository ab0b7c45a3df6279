"""Record what the deployed jobs ask of AWS: `python -m tests.recorded_requests.record`.

Each job runs with its page's arguments on a local lake, behind a proxy. The result, by job the
distinct permissions on patterns of resources, is written to requests.json in this folder.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from cdclake import naming
from cdclake.deployed_jobs import JOBS
from cdclake.local.lake.lake import BUCKET, LocalLake, open_lake
from cdclake.local.process.home import Home
from tests.local.deployed_runs import arguments_of, deployed_stream, lake_of_jobs, order, started
from tests.local.running import RunningLake
from tests.recorded_requests.permissions import Needed
from tests.recorded_requests.proxy import RecordingProxy, recording

REQUESTS = Path(__file__).with_name("requests.json")
_CHANGES = {
    naming.APPLY_JOB: "update order_items set sku = 'recorded' where order_id < 20",
    naming.POLL_JOB: "update cities set name = 'recorded', changed_at = now() where id < 3",
}
# Names that a run makes up: files by their folders, and texts with a random or a hashed part.
_RANDOM = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){0,6}[0-9a-f]*")
_MADE_UP = (
    (re.compile(r"^(warehouse/[^/]+/[^/]+_hudi/).+"), r"\1*"),
    (re.compile(r"^(warehouse/[^/]+/[^/]+/(?:data|metadata)/).*"), r"\1*"),
    (re.compile(r"(/(?:reports|repairs|repaired|resume|derived|polls)/)[^/]+$"), r"\1*"),
    (_RANDOM, "*"),
)
# Deployed jobs that are not recorded, with the reason.
NOT_RECORDED = {
    naming.LOAD_JOB: "it needs a lake without connector; its role is in test_bulk_load.py",
}
RECORDED = [job for job in JOBS if job not in NOT_RECORDED]
_ROOT = f"{BUCKET}/warehouse/"  # a folder only here: on AWS the warehouse is a bucket
Requests = dict[str, list[tuple[str, str]]]  # by job: action and pattern


def record(running: RunningLake) -> Requests:
    """Run each deployed job once; return what it asked for, patterns sorted."""
    lake = open_lake(Home(running.home))
    found: Requests = {}
    for job in RECORDED:
        with _behind_proxy(lake) as (proxied, proxy):
            _change(running, job)
            if job == naming.STREAM_JOB:
                _stream(running, proxied)
            else:
                job_run = started(proxied, job, arguments_of(lake, job))
                assert job_run.process.wait(300) == 0, job
        needed = [each for each in proxy.needed if each.on != _ROOT]
        found[job] = sorted({(each.action, _pattern(each, lake)) for each in needed})
    return found


def _change(running: RunningLake, job: str) -> None:
    """Change rows that the job is to bring in."""
    if job in _CHANGES:
        with running.connect() as connection:
            connection.execute(_CHANGES[job])
    if job == naming.APPLY_JOB:
        count = "select count(*) from order_items_current where sku = 'recorded'"
        running.eventually(lambda: running.sql(count)[0][0] > 0, 120)


@contextmanager
def _behind_proxy(lake: LocalLake) -> Iterator[tuple[LocalLake, RecordingProxy]]:
    with recording(lake.endpoints.s3) as (url, proxy):
        yield replace(lake, endpoints=replace(lake.endpoints, s3=url, glue=url)), proxy


def _stream(running: RunningLake, lake: LocalLake) -> None:
    """Let a deployed stream bring in changes, and hand over."""
    running.run("pause")
    with running.connect() as connection:
        connection.execute("update orders set note = 'recorded' where order_id <= 50")
    job = deployed_stream(lake, "recorded")
    query = "select count(*) from orders where note = 'recorded'"
    running.eventually(lambda: running.sql(query)[0][0] == 50, 180)
    order(lake, None)
    assert job.process.wait(120) == 0
    running.run("resume")


def _pattern(needed: Needed, lake: LocalLake) -> str:
    """The object in the deployment's terms: bucket STATE or WAREHOUSE, `*` for names made up."""
    text = needed.on
    if not needed.action.startswith("s3:"):
        return _RANDOM.sub("*", text)
    text = text.removeprefix(f"{BUCKET}/")
    for made_up, pattern in _MADE_UP:
        text = made_up.sub(pattern, text)
    if text == BUCKET:
        return "ANY"
    if text.startswith("warehouse/"):
        return f"WAREHOUSE/{text.removeprefix('warehouse/')}"
    text = text.replace(f"control/{lake.plan.name}/", "control/")
    return f"STATE/{re.sub('^plans/.*', 'deployed/plan-*.json', text)}"


def known() -> Requests:
    """The requests that are committed."""
    return {
        job: [(action, on) for action, on in calls]
        for job, calls in json.loads(REQUESTS.read_text()).items()
    }


def main() -> int:
    """Record, and write the file."""
    with tempfile.TemporaryDirectory() as folder, lake_of_jobs(Path(folder)) as running:
        found = record(running)
    REQUESTS.write_text(json.dumps(found, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
