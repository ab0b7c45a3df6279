"""Queries of derived tables in plain files, which have no earlier snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import boto3
import pytest
from moto import mock_aws

from cdclake.derived_table import DerivedTable
from cdclake.errors import InputError
from cdclake.jobs.derived.external_table import ExternalTable
from cdclake.jobs.reader.catalog import Catalog
from cdclake.jobs.reader.duck import Reader
from cdclake.local.reader.query import run_query
from tests.unit.verify.lakes import make_plan, make_table

DAILY = DerivedTable(
    name="daily", sql="", key=("id",), partition_by=(), format="json", schedule="", sources=()
)
YESTERDAY = "-1d"


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Reader]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    plan = replace(make_plan(make_table(name="orders")), derived=(DAILY,))
    with mock_aws():
        glue, s3 = boto3.client("glue"), boto3.client("s3")
        s3.create_bucket(Bucket="lake")
        glue.create_database(DatabaseInput={"Name": plan.lake_database})
        ExternalTable(plan.lake_database, "daily").publish(
            DAILY, "s3://lake/daily/run", {"id": "bigint"}, []
        )
        reader = Reader(plan=plan, s3="http://x", glue="http://x", bucket="lake", spill=tmp_path)
        reader.__dict__["catalog"] = Catalog(glue, s3, plan.lake_database)
        yield reader


def test_a_table_in_files_has_only_its_current_rows(reader: Reader) -> None:
    query = "SELECT id FROM daily"
    assert run_query(reader, query).rows == []
    for at, as_of in ((YESTERDAY, None), (None, YESTERDAY)):
        with pytest.raises(InputError, match="daily is kept in plain files") as refused:
            run_query(reader, query, at=at, as_of=as_of)
        assert "without --at and --as-of" in refused.value.remedy


def test_a_query_that_does_not_use_such_a_table_is_answered(reader: Reader) -> None:
    query = "SELECT 'daily' AS word"
    assert run_query(reader, query, at=YESTERDAY).rows == [["daily"]]
    assert run_query(reader, query, as_of=YESTERDAY).rows == [["daily"]]


@pytest.mark.parametrize(("at", "as_of"), [(None, YESTERDAY), (YESTERDAY, None), (None, None)])
def test_an_unknown_relation_is_refused_at_any_time(
    reader: Reader, at: str | None, as_of: str | None
) -> None:
    with pytest.raises(InputError, match="nosuch does not exist"):
        run_query(reader, "SELECT * FROM nosuch", at=at, as_of=as_of)
