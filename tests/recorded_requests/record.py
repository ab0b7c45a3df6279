"""Record what the deployed jobs ask of AWS: `python -m tests.recorded_requests.record [JOB ...]`.

Each job runs with its page's arguments on a local lake, behind a proxy, and with its own login at
Kafka. The result, by job the distinct permissions on patterns of resources, is written to
requests.json in this folder. Named jobs add to what is recorded of them, since a run need not do
all that another one did; the others keep it.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from cdclake import naming
from cdclake.control_objects import forget_name
from cdclake.deployed_jobs import AT_KAFKA, JOBS
from cdclake.local.lake.connector import ConnectorClient
from cdclake.local.lake.lake import BUCKET, LocalLake, open_lake
from cdclake.local.process.home import Home
from cdclake.local.reader.duck import lake_reader
from cdclake.local.reader.query import run_query
from tests.local.deployed_runs import (
    arguments_of,
    deployed_stream,
    lake_of_jobs,
    order,
    s3_checkpoint,
    started,
)
from tests.local.running import RunningLake
from tests.recorded_requests.kafka_audit import CONNECTOR, audited_kafka, kafka_options
from tests.recorded_requests.permissions import Needed
from tests.recorded_requests.proxy import RecordingProxy, recording

READER = "sql"  # the person who runs `cdclake sql`
REQUESTS = Path(__file__).with_name("requests.json")
_CHANGES = {
    naming.APPLY_JOB: "update order_items set sku = 'recorded' where order_id < 20",
    naming.FORGET_JOB: "delete from orders where order_id = 900",
    naming.POLL_JOB: "update cities set name = 'recorded', changed_at = now() where id < 3",
}
# Names that a run makes up: files by their folders, and texts with a random or a hashed part.
_RANDOM = re.compile(r"[0-9a-f]{8}(-?[0-9a-f]{4}){0,6}[0-9a-f]*")
_MADE_UP = (
    (re.compile(r"^(warehouse/[^/]+/[^/]+_hudi/).+"), r"\1*"),
    (re.compile(r"^(warehouse/[^/]+/[^/]+/(?:data|metadata)/).*"), r"\1*"),
    (re.compile(r"^(checkpoints/[^/]+/[^/]+/).+"), r"\1*"),
    (re.compile(r"(/(?:reports|resume|derived|polls)/)[^/]+$"), r"\1*"),
    (re.compile(r"(/(?:repairs|repaired)/)(?!.*\.forget\.json$)[^/]+$"), r"\1*"),
    (_RANDOM, "*"),
)
_GROUP_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}.*")
# Names of the local worker and of a page's deployment, and those of the synthesized deployment.
_OF_KAFKA = {
    "^topic/_connect_offsets$": "topic/__cdclake-offsets.shop",
    "^topic/_connect_configs$": "topic/__amazon_msk_connect_configs_shop-source_1",
    "^topic/_connect_statuss$": "topic/__amazon_msk_connect_status_shop-source_1",
    "^group/cdclake-connect$": "group/__amazon_msk_connect_1",
    "^group/shop-prod-": "group/shop-",
}
_AT_ONCE = 4
# Jobs that one lake runs in a test, which then takes minutes.
PARTS = tuple(JOBS[first : first + _AT_ONCE] for first in range(0, len(JOBS), _AT_ONCE))
_ROOT = f"{BUCKET}/warehouse/"  # a folder only here: on AWS the warehouse is a bucket
Requests = dict[str, list[tuple[str, str]]]  # by job: action and pattern


def record(running: RunningLake, jobs: Sequence[str] = JOBS) -> Requests:
    """Run each deployed job once; return what it and the connector asked for, patterns sorted."""
    lake = open_lake(Home(running.home))
    kafka = audited_kafka(running, AT_KAFKA)
    found: Requests = {}
    for job in jobs:
        if job == naming.LOAD_JOB:
            found[READER] = _patterns(_read(lake), lake)
            found[CONNECTOR] = _patterns(kafka.needed(CONNECTOR), lake)
            _remove_connector(running, lake)
        with _behind_proxy(lake) as (proxied, proxy):
            _change(running, job)
            if job == naming.FORGET_JOB:
                _order_erasure(lake)
            if job == naming.STREAM_JOB:
                _stream(running, proxied)
            else:
                for arguments in _runs(lake, job):
                    job_run = started(proxied, job, arguments | kafka_options(job, arguments))
                    assert job_run.process.wait(300) == 0, job
        needed = proxy.needed | kafka.needed(job)
        found[job] = _patterns(_on_aws(needed) if job == naming.FORGET_JOB else needed, lake)
    return found


def _order_erasure(lake: LocalLake) -> None:
    """Write the keys that the page's order names, into a bucket with versions as on AWS."""
    versions = {"Status": "Enabled"}
    lake.client("s3").put_bucket_versioning(Bucket=lake.bucket, VersioningConfiguration=versions)
    order = arguments_of(lake, naming.FORGET_JOB)["--order"]
    lake.control.write(forget_name(order), {"keys": [["900"]]})


def _on_aws(needed: Iterable[Needed]) -> Iterator[Needed]:
    """Return what an erasure needs where every object has versions, and reads all of them.

    Here most objects are older than the bucket's versions. Some are deleted while it reads.
    """
    folders = (_ROOT, f"{BUCKET}/control/", f"{BUCKET}/plans/", f"{BUCKET}/")
    for action, on in needed:
        if action.startswith("s3:GetObject") or action == "s3:ListBucket":
            yield Needed(action, f"{next(each for each in folders if on.startswith(each))}*")
        else:
            yield Needed("s3:DeleteObjectVersion" if action == "s3:DeleteObject" else action, on)


def _runs(lake: LocalLake, job: str) -> list[dict[str, str]]:
    """The page's arguments; and those without a reader, for only then it notes what is equal."""
    by_hand = arguments_of(lake, job)
    scheduled = {name: value for name, value in by_hand.items() if name != "--reader"}
    return [by_hand] if scheduled == by_hand else [by_hand, scheduled]


def _patterns(needed: Iterable[Needed], lake: LocalLake) -> list[tuple[str, str]]:
    return sorted({(each.action, _pattern(each, lake)) for each in needed if each.on != _ROOT})


def _read(lake: LocalLake) -> set[Needed]:
    """Query each relation of a table, now and as of a snapshot, as `cdclake sql` does."""
    with _behind_proxy(lake) as (proxied, proxy):
        for relation in ("orders", "orders_changes", "orders_current", "orders_history"):
            run_query(lake_reader(proxied), f"select count(*), min(order_id) from {relation}")
        past = datetime.now(UTC).isoformat()
        run_query(lake_reader(proxied), "select max(total) from orders_current", at=past)
    return proxy.needed


def _remove_connector(running: RunningLake, lake: LocalLake) -> None:
    """Do what precedes a bulk load: no stream, no connector, no slot that it could read."""
    running.run("pause")
    ConnectorClient(lake.endpoints.connect, lake.plan).remove()
    drop = f"SELECT pg_drop_replication_slot('{lake.plan.source_object}')"
    with running.connect() as connection:
        running.eventually(lambda: not _is_read(connection), 60)
        connection.execute(drop)


def _is_read(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    active = connection.execute("SELECT FROM pg_replication_slots WHERE active")
    return active.fetchone() is not None


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
    """Let a deployed stream bring in changes, and hand over.

    Its checkpoint is a new one in S3, as on AWS, and not the folder of the local stream.
    """
    checkpoint = {"--checkpoint": s3_checkpoint(lake, naming.STREAM_JOB)}
    running.run("pause")
    with running.connect() as connection:
        connection.execute("update orders set note = 'recorded' where order_id <= 50")
    job = deployed_stream(lake, "recorded", lambda *of: kafka_options(*of) | checkpoint)
    query = "select count(*) from orders where note = 'recorded'"
    running.eventually(lambda: running.sql(query)[0][0] == 50, 180)
    order(lake, None)
    assert job.process.wait(120) == 0
    running.run("resume")


def _pattern(needed: Needed, lake: LocalLake) -> str:
    """The object in the deployment's terms: bucket STATE or WAREHOUSE, `*` for names made up."""
    text = needed.on
    if needed.action.startswith("kafka-cluster:"):
        for local, deployed in _OF_KAFKA.items():
            text = re.sub(local, deployed, text)
        return _GROUP_ID.sub("*", text)
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


def _with(before: Requests, found: Requests) -> Requests:
    return before | {of: sorted({*calls, *before.get(of, [])}) for of, calls in found.items()}


def main() -> int:
    """Record, and write the file."""
    jobs = sys.argv[1:] or JOBS
    with tempfile.TemporaryDirectory() as folder, lake_of_jobs(Path(folder)) as running:
        found = record(running, jobs)
    kept = _with(known(), found) if sys.argv[1:] else found
    ordered = {name: kept[name] for name in (*JOBS, CONNECTOR, READER) if name in kept}
    REQUESTS.write_text(json.dumps(ordered, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
