"""Files of a derived table that a task writes more than once."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from pyspark.sql import DataFrame, SparkSession

from cdclake.control_objects import Lease, lease_name
from cdclake.derived_table import DerivedTable
from cdclake.errors import TableError
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.derived import file_copy
from cdclake.jobs.derived import refresh as refreshing
from cdclake.jobs.derived.partition_files import LINE, WRITTEN_DDL, FileWriter
from tests.spark.derived import DerivedLake
from tests.spark.events import MemoryStore
from tests.spark.test_derived_definition import ALL, ROWS, SOME, killed

pytestmark = pytest.mark.spark


def filled(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> DerivedLake:
    """Two rows of two partitions."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)  # of a lake that another test has opened
    lake = DerivedLake(spark, ALL, ("id",), ("v",), format="parquet")
    glue: Any = boto3.client("glue")
    glue.create_database(DatabaseInput={"Name": lake.address.lake.database})
    e = lake.address.event
    lake.address.run(e("c", 10, 10, id=1, v="a"), e("c", 10, 11, id=2, v="b"))
    return lake


def published(lake: DerivedLake) -> list[tuple[Any, ...]]:
    """Return the rows of every file in the folder that the catalog names."""
    glue: Any = boto3.client("glue")
    entry = glue.get_table(DatabaseName=lake.address.lake.database, Name=lake.table.name)["Table"]
    rows = lake.spark.read.parquet(entry["StorageDescriptor"]["Location"]).select("id", "v")
    return sorted(tuple(row) for row in rows.collect())


@mock_aws
def test_a_task_that_ends_after_the_publication_doubles_no_row(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark has given up its executor, which hung, and repeated it on another one."""
    lake, writers, frames = filled(spark, monkeypatch), list[FileWriter](), list[DataFrame]()
    arranged = file_copy._arranged

    def writer(*given: Any) -> FileWriter:
        writers.append(FileWriter(*given))
        return writers[-1]

    def frame(table: DerivedTable, rows: DataFrame) -> DataFrame:
        frames.append(arranged(table, rows))
        return frames[-1]

    monkeypatch.setattr(file_copy, "FileWriter", writer)
    monkeypatch.setattr(file_copy, "_arranged", frame)
    lake.refresh()
    assert published(lake) == ROWS
    frames[0].mapInArrow(writers[0], WRITTEN_DDL).collect()
    assert published(lake) == ROWS


@mock_aws
def test_a_refresh_leaves_what_a_later_run_of_it_has_written(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease may expire, as after a suspend, while it works."""
    lake, control = filled(spark, monkeypatch), MemoryStore()
    lake.leases = Leases(control, "refresh_derived")  # type: ignore[arg-type]
    lease = lease_name(lake.table.name)
    home = f"{spark.conf.get('spark.sql.catalog.lake.warehouse')}"
    later = Path(home) / f"{lake.address.lake.database}.db/{lake.table.name}/later/part-0"

    def expire(_: str) -> None:
        control.write(lease, Lease("another", time.time() + 600.0).to_json())

    with monkeypatch.context() as patched:
        patched.setattr(file_copy, "reach", lambda _: write_file(later))
        lake.refresh()
    assert later.exists()
    lake.sql = SOME
    with monkeypatch.context() as patched, pytest.raises(TableError, match="its lease"):
        patched.setattr(file_copy, "reach", expire)
        lake.refresh()
    assert published(lake) == ROWS
    held = control.read(lease)
    assert held is not None and held.content["owner"] == "another"


def write_file(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"")


@pytest.mark.parametrize("by", [(), ("part",)])
def test_the_rows_of_a_task_are_sorted_by_their_key(
    spark: SparkSession, by: tuple[str, ...]
) -> None:
    """A repetition that read them in another order would cut them into other files."""
    numbers = spark.range(1, 100).selectExpr("id * 37 % 101 AS id", "id % 3 AS part").coalesce(1)
    table = DerivedTable(
        name="t", sql="", key=("id",), partition_by=by, format="parquet", schedule="", sources=()
    )
    found = defaultdict(list)
    for row in file_copy._arranged(table, numbers).collect():
        found[row["part"] if by else ""].append(row["id"])
    assert len(found) == (3 if by else 1)
    assert all(ids == sorted(ids) for ids in found.values())


@mock_aws
@pytest.mark.slow
def test_files_that_are_published_and_not_noted_are_written_again(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deployment of the refresh that was killed is rolled back before the next one."""
    lake = filled(spark, monkeypatch)
    lake.refresh()
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(refreshing, "reach", killed)
        lake.sql = SOME
        lake.refresh()
    assert published(lake) == ROWS[1:]
    lake.sql = ALL
    lake.refresh()
    assert published(lake) == ROWS


def test_json_has_decimals_as_text_at_every_depth(spark: SparkSession) -> None:
    total = "CAST(1234567890123456.78 AS decimal(18, 2))"
    rows = spark.sql(
        f"SELECT 1 AS id, {total} AS total, array({total}, NULL) AS totals,"
        f" map('a', {total}) AS by,"
        f" array(named_struct('n', 1, 't', {total})) AS parts, array(1.5D) AS plain"
    )
    table = DerivedTable(
        name="t", sql="", key=("id",), partition_by=(), format="json", schedule="", sources=()
    )
    [row] = file_copy._arranged(table, rows).collect()
    text = "1234567890123456.78"
    assert json.loads(row[LINE]) == {
        "id": 1, "total": text, "totals": [text, None], "by": {"a": text},
        "parts": [{"n": 1, "t": text}], "plain": [1.5],
    }  # fmt: skip
