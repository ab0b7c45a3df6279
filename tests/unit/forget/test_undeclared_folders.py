"""Folders of the lake's database whose tables the pipeline file does not declare."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cdclake import naming
from cdclake.derived_table import DerivedTable
from cdclake.hudi_copy import HudiCopy
from cdclake.jobs.forget.lake_objects import LakeObjects
from tests.unit.forget.bucket import BUCKET
from tests.unit.verify.lakes import make_plan, make_table

TABLE = make_table(name="customers_v2")
DERIVED = DerivedTable(
    name="totals", sql="", key=("id",), schedule="x", sources=(TABLE.name,), format="json"
)
COPY = HudiCopy(name="copy", table=TABLE.name, type="mor", schedule="x")
PLAN = replace(make_plan(TABLE), derived=(DERIVED,), copies=(COPY,))


def undeclared(s3: Any, *keys: str) -> list[str]:
    for key in keys:
        s3.put_object(Bucket=BUCKET, Key=f"wh/{key}", Body=b"1")
    return LakeObjects(s3, None, PLAN, f"s3://{BUCKET}/wh").undeclared_folders()


def test_folders_of_the_plan_are_declared(s3: Any) -> None:
    names = (*TABLE.stored, naming.QUARANTINE, DERIVED.name, COPY.name, "cdclake_probe_1")
    database = f"{PLAN.lake_database}.db"
    assert undeclared(s3, *(f"{database}/{name}/data/1.parquet" for name in names)) == []


def test_tables_that_left_the_file_are_named(s3: Any) -> None:
    database = f"{PLAN.lake_database}.db"
    names = ("customers", "customers_changes", "old_totals", "customers_sink", TABLE.name)
    keys = (f"{database}/{name}/data/{n}.parquet" for name in names for n in range(3))
    assert undeclared(s3, *keys, "other.db/customers/1.parquet") == [
        f"s3://{BUCKET}/wh/{database}/{name}/"
        for name in ("customers", "customers_changes", "customers_sink", "old_totals")
    ]


def test_a_deployments_tables_are_below_the_root_of_its_bucket(s3: Any) -> None:
    folder = f"{PLAN.lake_database}.db/customers"
    s3.put_object(Bucket=BUCKET, Key=f"{folder}/1.parquet", Body=b"1")
    found = LakeObjects(s3, None, PLAN, f"s3://{BUCKET}").undeclared_folders()
    assert found == [f"s3://{BUCKET}/{folder}/"]


def test_versions_of_a_dropped_table_are_named(s3: Any) -> None:
    versions = {"Status": "Enabled"}
    s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration=versions)
    folder = f"{PLAN.lake_database}.db/customers"
    undeclared(s3, f"{folder}/1.parquet")
    s3.delete_object(Bucket=BUCKET, Key=f"wh/{folder}/1.parquet")
    assert undeclared(s3) == [f"s3://{BUCKET}/wh/{folder}/"]
