"""Orphan removal for real: old files that nothing refers to go, all others stay.

On Hadoop's catalog, and on Glue's with S3FileIO as deployed. Next to the table are others whose
names begin with its own: `t`, `t_x`, `t_changes`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from pyspark.sql import SparkSession

from cdclake.jobs.maintenance import actions
from cdclake.jobs.maintenance.actions import ORPHAN_AGE, MaintainedTable, remove_orphans
from cdclake.jobs.maintenance.snapshot_expiration import time_of
from cdclake.local.aws.aws_server import DurableAws
from tests.spark.events import Engine, plan_of
from tests.spark.glue_catalog import BUCKET, CLIENT, glue_session, serving

pytestmark = pytest.mark.spark

OLD = ORPHAN_AGE + timedelta(hours=1)
YOUNG = ORPHAN_AGE - timedelta(hours=1)
NEW = "00000-1-new.parquet"


class Folder:
    """The files of a warehouse on disk."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def names(self) -> set[str]:
        """All files, but Hadoop's checksums."""
        return {str(p.relative_to(self.root)) for p in self.root.rglob("*") if _counts(p)}

    def write(self, name: str) -> None:
        (self.root / name).write_bytes(b"orphan")

    def age(self, name: str, age: timedelta) -> None:
        then = (datetime.now(UTC) - age).timestamp()
        os.utime(self.root / name, (then, then))


class Bucket:
    """The objects of the local S3 below the warehouse."""

    root = "warehouse/"

    def __init__(self, url: str) -> None:
        self._s3: Any = boto3.client("s3", endpoint_url=url, **CLIENT)

    def names(self) -> set[str]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=self.root)
        found = (entry for page in pages for entry in page.get("Contents", []))
        return {entry["Key"].removeprefix(self.root) for entry in found}

    def write(self, name: str) -> None:
        self._s3.put_object(Bucket=BUCKET, Key=self.root + name, Body=b"orphan")

    def age(self, name: str, age: timedelta) -> None:
        key = s3_backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[BUCKET].keys[self.root + name]
        key.last_modified = datetime.now(UTC).replace(tzinfo=None) - age


def _counts(path: Path) -> bool:
    return path.is_file() and not path.name.endswith(".crc") and path.name != "version-hint.text"


@pytest.fixture(params=[pytest.param("hadoop", marks=pytest.mark.slow), "glue"])
def place(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path
) -> Iterator[tuple[SparkSession, Folder | Bucket]]:
    if request.param == "hadoop":
        root = spark.conf.get("spark.sql.catalog.lake.warehouse")
        assert root is not None
        yield spark, Folder(Path(root))
        return
    with serving(DurableAws(tmp_path)) as url:
        yield glue_session(spark, url), Bucket(url)


def of_table(files: Folder | Bucket, name: str) -> set[str]:
    return {file for file in files.names() if f"/{name}/" in f"/{file}"}


def test_old_orphans_go_and_every_live_file_stays(
    place: tuple[SparkSession, Folder | Bucket], monkeypatch: pytest.MonkeyPatch
) -> None:
    spark, files = place
    engine = Engine(spark)
    name = engine.table.name
    plan = plan_of()
    neighbour = replace(plan.tables[0], name=f"{name}_x", topic=f"x.public.{name}_x")
    other = Engine(spark, replace(plan, tables=(neighbour,)))
    e = engine.event
    for each in (engine, other):
        each.run(e("c", 10, 10, v="a"), e("c", 10, 11, id=2, v="b"))
        each.run(e("u", 20, 20, v="c"))
    tables = (name, engine.table.changes, f"{name}_x", f"{name}_x_changes")
    live = {table: of_table(files, table) for table in tables}
    folders = {table: next(f for f in live[table] if "/data/" in f).rpartition("/")[0]
               for table in tables}  # fmt: skip
    for table in tables:
        for file in live[table]:
            files.age(file, OLD)
        files.write(f"{folders[table]}/00000-1-old.parquet")
        files.age(f"{folders[table]}/00000-1-old.parquet", OLD)
        files.write(f"{folders[table]}/{NEW}")
        files.age(f"{folders[table]}/{NEW}", YOUNG)
    before = {table: of_table(files, table) for table in tables}

    _remove(engine, name)  # the table has no snapshot as old as the limit: nothing is looked for
    assert {table: of_table(files, table) for table in tables} == before

    monkeypatch.setattr(actions, "time_of", lambda millis: time_of(millis) - OLD)
    _remove(engine, name)
    assert of_table(files, name) == live[name] | {f"{folders[name]}/{NEW}"}
    for table in tables[1:]:
        assert of_table(files, table) == before[table], table
    _remove(engine, engine.table.changes)
    log = engine.table.changes
    assert of_table(files, log) == live[log] | {f"{folders[log]}/{NEW}"}
    for each in (engine, other):
        assert each.state() == {1: ("c", None), 2: ("b", None)}
        assert len(each.log()) == 3


def _remove(engine: Engine, name: str) -> None:
    now, history = datetime.now(UTC), timedelta(days=90)
    remove_orphans(MaintainedTable(engine.lake, engine.table, name, now, history))
