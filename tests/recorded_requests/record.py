"""Record what the deployed jobs ask of AWS: `python -m tests.recorded_requests.record`.

Each job runs with its page's arguments on a local lake, behind a proxy. The result, by job the
distinct permissions on patterns of resources, is written to requests.json beside this file.
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
from cdclake.local.lake.lake import BUCKET, LocalLake, open_lake
from cdclake.local.process.home import Home
from tests.local.running import DERIVED, SHOP, RunningLake, shop_lake_in
from tests.local.test_deployed_arguments import at_source, deployed_stream, order, started
from tests.recorded_requests.permissions import Needed
from tests.recorded_requests.proxy import RecordingProxy, recording
from tests.unit.deployed.page import arguments_of_a_run

REQUESTS = Path(__file__).with_name("requests.json")
_POLLED = """  public.cities:
    key: [id]
    columns: {id: integer, name: text, changed_at: timestamptz}
    capture: {poll: {by: changed_at, every: rate(1 day)}}
"""
_CITIES = """
CREATE TABLE cities (id int PRIMARY KEY, name text, changed_at timestamptz DEFAULT now());
INSERT INTO cities SELECT i, 'city ' || i FROM generate_series(1, 50) AS i;
"""
# Names that a run makes up: files by their folders, and texts with a random or a hashed part.
_MADE_UP = (
    (re.compile(r"^(warehouse/[^/]+/[^/]+/(?:data|metadata)/).*"), r"\1*"),
    (re.compile(r"(/(?:reports|leases|repairs|repaired|resume|derived|polls)/)[^/]+$"), r"\1*"),
    (re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){0,6}[0-9a-f]*"), "*"),
)
Requests = dict[str, list[tuple[str, str]]]  # by job: action and pattern


@contextmanager
def lake_of_jobs(folder: Path) -> Iterator[RunningLake]:
    """A streaming lake with a derived table, a Hudi copy and a polled table."""
    file = folder / "shop.yaml"
    copied = "public.customers:\n    publish: [{hudi: {}}]"
    text = SHOP.read_text().replace("public.customers:", copied)
    file.write_text(text.rstrip() + "\n" + _POLLED + DERIVED)
    with shop_lake_in(folder) as running:
        with running.connect() as connection:
            connection.execute(_CITIES)
        running.run("up", str(file))
        yield running


def record(running: RunningLake) -> Requests:
    """Run each deployed job once; return what it asked for, patterns sorted."""
    lake = open_lake(Home(running.home))
    found: Requests = {}
    for job, given in arguments_of_a_run().items():
        with _behind_proxy(lake) as (proxied, proxy):
            if job == naming.STREAM_JOB:
                _stream(running, proxied)
            else:
                tables = {"--tables": "cities"} if job == naming.POLL_JOB else {}
                arguments = {**_local(lake, job), **given, **tables}
                assert started(proxied, job, arguments).process.wait(300) == 0, job
        found[job] = sorted({(n.action, _pattern(n, lake)) for n in proxy.needed})
    return found


@contextmanager
def _behind_proxy(lake: LocalLake) -> Iterator[tuple[LocalLake, RecordingProxy]]:
    with recording(lake.endpoints.s3) as (url, proxy):
        yield replace(lake, endpoints=replace(lake.endpoints, s3=url, glue=url)), proxy


def _local(lake: LocalLake, job: str) -> dict[str, str]:
    at_sources = (naming.VERIFY_JOB, naming.OPERATE_JOB, naming.POLL_JOB)
    return at_source(lake, job) if job in at_sources else {}


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
        return text
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
