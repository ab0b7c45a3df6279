"""Notes of the scheduled source check for the stream, with S3 by moto."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import boto3
import pytest

from cdclake.plan import Plan, Table
from cdclake.postgres.deployed_remedies import deployed_remedy
from cdclake.postgres.prepare import PublicationState
from cdclake.postgres.relation_check import compare_relations, records_content
from cdclake.postgres.relation_record import RelationRecord
from cdclake.postgres.relations import SourceState
from cdclake.source_notes import widening_warnings
from tests.load_function import load
from tests.unit.postgres.tables import actual, column, declared
from tests.unit.runbooks import PAGES

Check = Callable[[Table], int]  # number of changed tables


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


@pytest.mark.parametrize(
    ("readers", "advice"),
    [
        (("athena", "trino"), "--target aws --table orders"),
        (("trino",), "--table orders` prints: until then its views in Trino"),
        (("spark",), ""),
    ],
)
def test_a_widened_type_is_advised_for_the_views_that_readers_have(
    readers: tuple[str, ...], advice: str
) -> None:
    plan = Plan(
        name="shop", source_database="d", lake_database="l", tables=(declared(),), readers=readers
    )
    [warning] = widening_warnings(plan, {"orders": {"id": "bigint"}})
    assert advice in warning
    assert ("cdclake views" in warning) == bool(advice)


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


def renewed(**changes: Any) -> tuple[SourceState, dict[str, RelationRecord]]:
    """Return a source whose table is another relation than the recorded one."""
    now = actual(oid=2)
    state = {
        "tables": {now.id: now},
        "names": {now.oid: now.id},
        "alike": {},
        "loaded": frozenset(),
        "publication": PublicationState(True, False, True, {}),
        "role": "cdclake_shop",
        "sees_all_rows": False,
        "version": 170000,
        "streams": True,
        **changes,
    }
    records = {"public.orders": RelationRecord.of(declared(), actual(oid=1), settled=True)}
    return SourceState(**state), records


@pytest.fixture
def check(function: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Check:
    """Return the check of a source that was created again, deployed with the given table."""
    published = PublicationState(True, False, True, {("public", "orders"): None})
    source, records = renewed(publication=published)
    key, plan_json = "control/relations.json", tmp_path / "plan.json"
    body = json.dumps(records_content(records)).encode()
    boto3.client("s3").put_object(Bucket="state", Key=key, Body=body)
    monkeypatch.setenv("DIMENSION", "shop")
    monkeypatch.setattr(function, "PLAN", plan_json)
    monkeypatch.setattr(function, "connected", lambda login: nullcontext())
    monkeypatch.setattr(function, "read_source", lambda *_: source)

    def check(table: Table) -> int:
        plan = Plan(name="shop", source_database="d", lake_database="l", tables=(table,))
        plan_json.write_text(plan.to_json())
        return int(function.check({}, None)["changed"])

    return check


def test_the_check_logs_remedies_of_a_deployment(
    check: Check, caplog: pytest.LogCaptureFixture
) -> None:
    assert check(declared()) == 1
    [line] = [each for each in caplog.messages if each.startswith("public.orders: recreated")]
    assert "increase `aws: connect: login_version` and deploy" in line
    assert "`cdclake resync orders --target aws`" in line


def test_the_check_records_a_table_that_returned_under_another_name(check: Check) -> None:
    """Both deployments of the repair may fall between two checks."""
    assert check(declared(delivery="firehose")) == 1
    again = declared(delivery="firehose", name="sales")
    assert check(again) == 0
    recorded = take_objects()["relations.json"]["tables"]["public.orders"]
    assert (recorded["oid"], recorded["lake_name"]) == (2, "sales")
    assert check(again) == 0


@pytest.mark.parametrize("delivery", ["stream", "firehose"])
@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({}, "recreated"),
        ({"tables": {}, "names": {1: ("public", "old")}}, "renamed"),
        ({"tables": {}, "names": {}}, "missing"),
    ],
)
def test_no_remedy_of_a_deployment_runs_up(changes: Any, kind: str, delivery: Any) -> None:
    source, records = renewed(**changes)
    table = declared(delivery=delivery)
    [change] = compare_relations(source, [table], records)["public.orders"]
    remedy = deployed_remedy(table, change)
    assert change.kind == kind and "cdclake up" not in remedy
    assert ("cdclake resync" in remedy) == (delivery == "stream")
    assert ("RENAME TO" in remedy) == (kind == "renamed")


def test_the_runbook_publishes_a_table_by_a_changed_property() -> None:
    """The synthesis test of `login_version` shows that it changes the custom resource."""
    [step] = re.findall(r"^2[.] .*?(?=^3[.])", PAGES["changed-relations"], re.M | re.S)
    assert "`recreated`" in step and "`aws: connect: login_version`" in step
