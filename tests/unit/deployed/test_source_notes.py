"""Notes of the scheduled source check for the stream, with S3 by moto."""

from __future__ import annotations

import json
from types import ModuleType, SimpleNamespace
from typing import Any

import boto3
import pytest

from cdclake.plan import Plan
from tests.load_function import load
from tests.unit.postgres.tables import actual, column, declared


@pytest.fixture
def function(aws: None, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    where = {"LocationConstraint": "eu-west-1"}
    boto3.client("s3").create_bucket(Bucket="state", CreateBucketConfiguration=where)
    monkeypatch.setenv("BUCKET", "state")
    return load("prepare_source")


def take_objects() -> dict[str, Any]:
    """Return the control objects, and delete the requests, as the stream does."""
    s3, taken = boto3.client("s3"), {}
    for each in s3.list_objects_v2(Bucket="state").get("Contents", []):
        key = each["Key"]
        taken[key.removeprefix("control/")] = json.loads(
            s3.get_object(Bucket="state", Key=key)["Body"].read()
        )
        if "/orders" in key:
            s3.delete_object(Bucket="state", Key=key)
    return taken


def test_widened_and_new_columns_are_noted_once(
    function: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    def note(*columns: Any) -> int:
        source = actual(columns=columns)
        return int(function.note_columns(plan, SimpleNamespace(tables={source.id: source})))

    plan = Plan(
        name="shop",
        source_database="d",
        lake_database="l",
        tables=(declared(),),
        new_columns="stop",
    )
    narrow, wide, number = column("id"), column("id", "bigint"), column("number")
    assert note(narrow, number) == 0
    assert take_objects() == {}
    assert note(wide, number, column("more", "text"), column("shape", None)) == 2
    assert "orders: the source has widened id to bigint; run `cdclake views" in caplog.text
    taken = take_objects()
    assert taken["widened.json"] == {"tables": {"orders": {"id": "bigint"}}}
    assert taken["new_columns.json"] == {"tables": {"orders": {"more": "text", "shape": None}}}
    assert taken["resume/orders.json"] == {"mended": "columns"}
    assert taken["repairs/orders.replay.json"]["id"]
    assert note(wide, number, column("more", "text"), column("shape", None)) == 2
    assert take_objects().keys() == {"widened.json", "new_columns.json"}  # nothing new
    assert note(wide, number) == 0
    taken = take_objects()
    assert taken["new_columns.json"] == {"tables": {}}
    assert taken["resume/orders.json"] == {"mended": "columns"}
