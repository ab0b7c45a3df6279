"""A stored lake, unpacked: its local AWS runs, and the new version's readers and jobs open it."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.iceberg.catalog_conf import catalog_conf
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.table_jobs.table_job import TableJob
from cdclake.local.components import aws
from cdclake.local.components.connect import ConnectApi
from cdclake.local.components.installed import REGION
from cdclake.local.components.kafka import Broker
from cdclake.local.lake.lake import LakeState, LocalLake, use_local_aws
from cdclake.local.lake.stack import Endpoints
from cdclake.local.process.credentials import aws_keys
from cdclake.local.process.home import Home
from cdclake.local.reader.duck import lake_reader
from cdclake.plan import Plan, Table
from tests.recorded.recording import Record
from tests.stored_lake.archive import unpack

FOLDER = Path(__file__).parent
ARCHIVES = sorted(FOLDER.glob("lake-*.tar.gz"))
READY_S = 60.0

Rows = dict[str, list[list[str | None]]]  # by relation
# The views of changes have them since a later version than the archives.
_LATER_FACTS = (naming.EPOCH, naming.LSN, naming.PREV_COMMIT_LSN, naming.PHASE)


@dataclass(frozen=True)
class StoredLake:
    """One unpacked archive, with S3 and Glue at `lake.s3`."""

    folder: Path
    lake: LocalLake

    @cached_property
    def expected(self) -> Mapping[str, Any]:
        """What the version that wrote the lake read from it."""
        content: dict[str, Any] = json.loads((self.folder / "expected.json").read_text())
        return content

    @cached_property
    def records(self) -> list[Record]:
        """Kafka's records of the pipeline, from before and after the lake was stored."""
        lines = (self.folder / "records.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
        return [Record.from_line(line) for line in lines]

    def rows(self, *, without_times: bool = False) -> Rows:
        """Return every relation's rows through the independent reader; see `query`."""
        with lake_reader(self.lake).open() as session:
            return {
                name: [texts for (texts,) in session.execute(query(name, without_times)).fetchall()]
                for name in relations(self.lake.plan)
            }

    def job(self, spark: SparkSession, name: str) -> TableJob:
        """Return what the job of that name works with.

        The history is kept for so long that no day of the archive is ever collapsed.
        """
        plan, control = replace(self.lake.plan, history_days=100_000), self.lake.control
        lake = LakeTables(self.session(spark), plan.lake_database)
        return TableJob(plan, lake, Leases(control, name), control, named=True)

    def session(self, spark: SparkSession) -> SparkSession:
        """Return a session of the same JVM with the jobs' catalog in place of the tests'."""
        system = spark._jvm.java.lang.System  # type: ignore[union-attr]
        system.setProperty("aws.accessKeyId", self.lake.endpoints.keys.user)
        system.setProperty("aws.secretAccessKey", self.lake.endpoints.keys.password)
        system.setProperty("http.nonProxyHosts", "127.0.0.1")
        catalog = f"spark.sql.catalog.{naming.CATALOG}"
        session = spark.newSession()
        session.conf.unset(f"{catalog}.type")
        jobs = catalog_conf(self.lake.warehouse_uri)
        settings = {name: value for name, value in jobs.items() if name.startswith(catalog)} | {
            f"{catalog}.glue.endpoint": self.lake.glue,
            f"{catalog}.s3.endpoint": self.lake.s3,
            f"{catalog}.s3.access-key-id": self.lake.endpoints.keys.user,
            f"{catalog}.s3.secret-access-key": self.lake.endpoints.keys.password,
            f"{catalog}.s3.path-style-access": "true",
            f"{catalog}.client.region": REGION,
        }
        for name, value in settings.items():
            session.conf.set(name, value)
        # A catalog is made when it is first used, from the settings of whichever session is active:
        # a statement makes its own session that one.
        session.sql(f"SHOW NAMESPACES IN {naming.CATALOG}")
        return session


def relations(plan: Plan) -> list[str]:
    """Return every relation of the plan's tables, and the quarantine."""
    return [naming.QUARANTINE, *(name for table in plan.tables for name in _names(table))]


def _names(table: Table) -> tuple[str, ...]:
    views = naming.current_name(table.name), naming.history_name(table.name)
    return table.name, table.changes, *views


def query(relation: str, without_times: bool = False) -> str:
    """Return the query of a relation's rows in order, each as a list of DuckDB's texts.

    `without_times` leaves out when a job wrote a row. One query of all relations would be quicker,
    but DuckDB 1.5.5 fails in a union over a table with more deleted positions than rows.
    """
    omitted = ["", *((naming.INGESTED_AT, "quarantined_at") if without_times else ())]
    if relation.endswith(naming.history_name("")):
        omitted += _LATER_FACTS
    listed = ", ".join(f"'{name}'" for name in omitted)
    values = f"SELECT COLUMNS(c -> c NOT IN ({listed}))::VARCHAR FROM {relation}"
    return f"SELECT [*COLUMNS(*)] AS texts FROM ({values}) ORDER BY ALL"


@contextmanager
def stored_lake(archive: Path, folder: Path, port: int) -> Iterator[StoredLake]:
    """Unpack the archive and run its local AWS as long as the block lasts."""
    unpack(archive, folder)
    home, url = Home(folder / "home"), f"http://127.0.0.1:{port}"
    home.create()  # adds what earlier versions did not have
    keys = aws_keys(home)
    endpoints = Endpoints(
        None, Broker("", keys), ConnectApi("", keys), s3=url, glue=url, logs="", keys=keys
    )
    state = LakeState.load(home)
    plan = Plan.from_json(state.plan)
    lake = LocalLake(home=home, state=state, plan=plan, endpoints=endpoints, dsn="")
    component = aws.component(home, port)
    server = subprocess.Popen(component.spec.argv, env=component.spec.env, cwd=component.spec.cwd)
    try:
        with patch.dict(os.environ):
            use_local_aws(endpoints)
            deadline = time.monotonic() + READY_S
            while not _answers(port):
                assert server.poll() is None, "the local AWS ended"
                assert time.monotonic() < deadline, "the local AWS does not answer"
                time.sleep(0.05)
            yield StoredLake(folder, lake)
    finally:
        server.kill()
        server.wait()


def _answers(port: int) -> bool:
    with suppress(OSError):
        return aws.answers(port)
    return False
