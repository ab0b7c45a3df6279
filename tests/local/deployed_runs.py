"""The deployed jobs with the arguments of docs/jobs.md, on a local lake that has all of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cdclake import naming
from cdclake.debezium.worker import password_of, salt_of
from cdclake.deployed_jobs import AT_KAFKA, AT_SOURCE
from cdclake.local.lake.lake import LocalLake, source_parts
from cdclake.local.lake.spark_jobs import KAFKA_OPTIONS, RunningJob, checkpoint_uri, start_job
from cdclake.stacks.bundles import AUTHORITIES
from tests.local.running import DERIVED, SHOP, RunningLake, shop_lake_in
from tests.unit.deployed.page import arguments_of_a_run, deployed_arguments

Arguments = dict[str, str]
_POLLED = """  public.cities:
    key: [id]
    columns: {id: integer, name: text, changed_at: timestamptz}
    capture: {poll: {by: changed_at, every: rate(1 day)}}
"""
_DECLARED = {
    "public.customers": "publish: [{hudi: {}}]",
    "public.order_items": "apply: scheduled",
}
_CITIES = """
CREATE TABLE cities (id int PRIMARY KEY, name text, changed_at timestamptz DEFAULT now());
INSERT INTO cities SELECT i, 'city ' || i FROM generate_series(1, 50) AS i;
"""


@contextmanager
def lake_of_jobs(folder: Path) -> Iterator[RunningLake]:
    """A streaming lake with a derived table, a Hudi copy, a scheduled and a polled table."""
    file = folder / "shop.yaml"
    text = SHOP.read_text()
    for table, declared in _DECLARED.items():
        text = text.replace(f"{table}:", f"{table}:\n    {declared}")
    file.write_text(text.rstrip() + "\n" + _POLLED + DERIVED)
    with shop_lake_in(folder) as running:
        with running.connect() as connection:
            connection.execute(_CITIES)
        running.run("up", str(file))
        yield running


def arguments_of(lake: LocalLake, job: str) -> dict[str, str]:
    """All arguments of a run that the page starts by hand; polls and applies have their tables."""
    tables = {naming.POLL_JOB: "cities", naming.APPLY_JOB: "order_items"}
    chosen = {"--tables": tables[job]} if job in tables else {}
    return local_arguments(lake, job) | arguments_of_a_run()[job] | chosen


def started(lake: LocalLake, job: str, arguments: dict[str, str]) -> RunningJob:
    """A run with these arguments; what begins with the local lake's own addresses stays."""
    return start_job(lake, job, {k.removeprefix("--"): v for k, v in arguments.items()})


def local_arguments(lake: LocalLake, job: str) -> dict[str, str]:
    """The page's arguments with local addresses; nothing here has a certificate to look at."""
    given = deployed_arguments()[job]
    local = {"--control": lake.control_uri}
    values = {
        "--plan": lake.plan_uri,
        "--database": lake.plan.lake_database,
        "--checkpoint": (
            s3_checkpoint(lake, job) if job == naming.PROBE_JOB else checkpoint_uri(lake)
        ),
        "--metrics": given.get("--metrics", ""),
        "--runs": given.get("--runs", ""),
        "--mask_salt": naming.salt_secret(lake.plan.name),
        "--offsets": "_connect_offsets",
    }
    local |= {name: value for name, value in values.items() if name in given}
    if job in AT_KAFKA:
        local["--brokers"] = lake.kafka.address
        local["--kafka_options"] = json.dumps(KAFKA_OPTIONS | _group(given))
    if job in AT_SOURCE:
        local |= _of_source(lake, given)
    if job == naming.LOAD_JOB:
        local |= _of_load(lake, given)
    assert local.keys() == given.keys() - {"--deployment"}
    return local


def s3_checkpoint(lake: LocalLake, job: str) -> str:
    """The page's checkpoint in the local state bucket, for which the job needs Hadoop's S3A."""
    given = deployed_arguments()[job]["--checkpoint"]
    return given.replace("STATE-BUCKET", lake.bucket)


def _group(given: dict[str, str]) -> dict[str, str]:
    return {"groupIdPrefix": json.loads(given["--kafka_options"])["groupIdPrefix"]}


def _of_source(lake: LocalLake, given: dict[str, str]) -> dict[str, str]:
    words, parts = json.loads(given["--source"]), source_parts(lake.dsn)
    words |= {"host": parts["host"], "port": str(parts["port"]), "dbname": parts["dbname"]}
    return {
        "--source": json.dumps(words | {"sslmode": "prefer"}),
        "--login": naming.login_secret(lake.plan.name),
        "--authorities": _authorities(lake),
    }


def _authorities(lake: LocalLake) -> str:
    lake.client("s3").upload_file(str(AUTHORITIES), lake.bucket, "deployed/rds-ca.pem")
    return f"s3://{lake.bucket}/deployed/rds-ca.pem"


def _of_load(lake: LocalLake, given: dict[str, str]) -> dict[str, str]:
    """The load of the next epoch; the local server has no certificate of RDS."""
    address, parts = json.loads(given["--source"]), source_parts(lake.dsn)
    address |= {"host": parts["host"], "port": parts["port"], "database": parts["dbname"]}
    address |= {"sslmode": "prefer", "sslfactory": "", "user": lake.plan.source_object}
    address["password"] = password_of(naming.login_secret(lake.plan.name))
    return {
        "--source": json.dumps(address),
        "--slot": lake.plan.source_object,
        "--epoch": str(lake.state.epoch + 1),
        "--connector": naming.connector_name(lake.plan.name),
        "--authorities": _authorities(lake),
        "--mask_salt": salt_of(naming.salt_secret(lake.plan.name)),
    }


def deployed_stream(
    lake: LocalLake, deployment: str, more: Callable[[str, Arguments], Arguments] = lambda *_: {}
) -> RunningJob:
    """The stream with the page's arguments, but for the local broker's login and for `more`."""
    order(lake, deployment)
    arguments = local_arguments(lake, naming.STREAM_JOB) | {"--deployment": deployment}
    return started(lake, naming.STREAM_JOB, arguments | more(naming.STREAM_JOB, arguments))


def order(lake: LocalLake, deployment: str | None) -> None:
    """As the keeper does."""
    lake.control.write(naming.STREAM_ORDER, {"deployment": deployment})
