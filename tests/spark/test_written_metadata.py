"""Requests of a commit to Glue and S3: metadata files that a process has written are not read."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.table_handle import TableHandle
from cdclake.local.aws.aws_server import DurableAws
from cdclake.local.aws.http_server import Answer
from tests.spark.glue_catalog import glue_session, serving

pytestmark = pytest.mark.spark


class CountingAws:
    """The local S3 and Glue, which note each request."""

    def __init__(self, folder: Path) -> None:
        self._aws = DurableAws(folder)
        self.requests: Counter[str] = Counter()

    def __call__(self, environ: dict[str, Any], body: bytes) -> Answer:
        target = environ.get("HTTP_X_AMZ_TARGET", "").removeprefix("AWSGlue.")
        self.requests[target or environ["REQUEST_METHOD"]] += 1
        return self._aws(environ, body)


@pytest.fixture
def aws(tmp_path: Path) -> CountingAws:
    return CountingAws(tmp_path)


@pytest.fixture
def lake(spark: SparkSession, aws: CountingAws) -> Iterator[LakeTables]:
    with serving(aws) as url:
        session = glue_session(spark, url)
        session.sql("CREATE DATABASE IF NOT EXISTS lake.cdc")
        session.sql("DROP TABLE IF EXISTS lake.cdc.t")
        session.sql("CREATE TABLE lake.cdc.t (a int) USING iceberg")
        yield LakeTables(session, "cdc")


def append(handle: TableHandle, value: int) -> None:
    file = handle.target().write(pa.table({"a": pa.array([value], pa.int32())}))
    handle.append(
        [file],
        read_from=handle.stamped().snapshot_id,
        unless_added=handle.expressions.alwaysTrue(),
    )


def test_a_commit_reads_no_metadata_file_again(lake: LakeTables, aws: CountingAws) -> None:
    handle = TableHandle(lake, "t")
    append(handle, 1)
    aws.requests.clear()
    append(handle, 2)
    # The data file; manifest, manifest list and metadata.
    assert aws.requests == {"PUT": 4, "GetTable": 3, "UpdateTable": 1}


def test_another_writers_commit_is_seen(lake: LakeTables) -> None:
    handle = TableHandle(lake, "t")
    append(handle, 1)
    lake.spark.sql("INSERT INTO lake.cdc.t VALUES (2)")
    lake.spark.sql("DELETE FROM lake.cdc.t WHERE a = 1")
    rows = lake.spark.sql("SELECT a FROM lake.cdc.t").collect()
    assert [row["a"] for row in rows] == [2]
