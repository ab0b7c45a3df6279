"""A derived table neither leaves nor enters Iceberg while the catalog has its old table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from pyspark.sql import SparkSession

from cdclake.derived_table import FileFormat
from cdclake.errors import TableError
from cdclake.jobs.operations.erasure import derived_of
from cdclake.local.aws.aws_server import DurableAws
from tests.spark.derived import DerivedLake
from tests.spark.glue_catalog import BUCKET, glue_session, serving

pytestmark = pytest.mark.spark

ENVIRONMENT = {
    "AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
}  # fmt: skip


@pytest.fixture
def lake(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DerivedLake]:
    with serving(DurableAws(tmp_path)) as url:
        for name, value in {**ENVIRONMENT, "AWS_ENDPOINT_URL": url}.items():
            monkeypatch.setenv(name, value)
        sql = "SELECT a.id, a.v FROM {address}_current AS a"
        made = DerivedLake(glue_session(spark, url), sql, ("id",))
        made.address.run(made.address.event("c", 10, 10, id=1, v="a"))
        yield made


def files(lake: DerivedLake) -> set[str]:
    """Return the objects of the derived table."""
    client: Any = boto3.client("s3")
    folder = f"warehouse/{lake.address.lake.database}.db/{lake.table.name}/"
    found = client.list_objects_v2(Bucket=BUCKET, Prefix=folder)
    return {each["Key"] for each in found.get("Contents", ())}


def erasable(lake: DerivedLake) -> list[str]:
    """Return the derived tables that an erasure would write again."""
    job = lake.job
    return [each.name for each in derived_of(job.plan, lake.sources[0], job.lake, job.control)]


@pytest.mark.parametrize(("before", "after"), [("parquet", "iceberg"), ("iceberg", "parquet")])
@pytest.mark.slow
def test_another_format_is_refused_before_rows_are_written(
    lake: DerivedLake, before: FileFormat, after: FileFormat
) -> None:
    lake.format = before
    assert lake.refresh() == 1
    stored = files(lake)
    lake.format = after
    for work in (lake.refresh, lambda: erasable(lake)):
        with pytest.raises(TableError, match="the catalog has another table of this name") as error:
            work()
        assert "drop the other table" in error.value.remedy
    assert stored and files(lake) == stored
    glue: Any = boto3.client("glue")
    glue.delete_table(DatabaseName=lake.address.lake.database, Name=lake.table.name)
    assert lake.refresh() == 1
    assert erasable(lake) == [lake.table.name]
