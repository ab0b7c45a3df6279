"""Log of the functions that prepare the source of a deployment and run SQL files in it."""

from __future__ import annotations

import json
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from cdclake import cloudformation
from cdclake.errors import InputError
from cdclake.naming import SOURCE_SQL_PREFIX
from cdclake.postgres.ownership import Owner
from cdclake.postgres.prepare import PublicationState
from cdclake.postgres.relation_check import records_content
from cdclake.postgres.relation_record import RelationRecord
from cdclake.postgres.run_script import ScriptResult
from cdclake.postgres.server import settings_warnings
from tests.load_function import load
from tests.unit.postgres.tables import actual, declared, plan, server

STACK = "arn:aws:cloudformation:eu-west-1:123456789012:stack/shop-cdc/1"


@pytest.mark.parametrize(("limit_mb", "is_warned"), [(-1, True), (65536, False)])
def test_unlimited_wal_is_logged_with_its_remedy(
    tmp_path, monkeypatch, caplog, limit_mb, is_warned
):
    function = load("prepare_source")
    file = tmp_path / "plan.json"
    file.write_text(plan().to_json())
    done = SimpleNamespace(database="shop", version=170011, slot_loss="")
    monkeypatch.setenv("LOGIN_SECRET", "shop/source")
    monkeypatch.setattr(function, "PLAN", file)
    monkeypatch.setattr(function, "secret", lambda _: {"password": "p"})
    monkeypatch.setattr(function, "connected", lambda _: nullcontext())
    monkeypatch.setattr(function, "note_omissions", lambda *_: None)
    monkeypatch.setattr(function, "prepare_session", lambda *_, **__: done)
    found = settings_warnings(server(slot_wal_mb=limit_mb))
    monkeypatch.setattr(function, "source_warnings", lambda *_, **__: found)
    function.do("Create", "prepared", Owner("aws:1", "a stack"))
    logged = [each.message for each in caplog.records if each.levelname == "WARNING"]
    assert bool(logged) is is_warned
    assert all("ALTER SYSTEM SET max_slot_wal_keep_size" in line for line in logged)


@pytest.mark.parametrize(
    ("request_type", "physical_id", "made_unmarked"),
    [
        ("Delete", "Preparation", True),
        ("Update", "Preparation", True),
        ("Create", None, False),
        ("Delete", "shop-cdc-Preparation-1A2B3C", False),
    ],
)
def test_objects_without_a_mark_are_of_the_resource_that_prepared_them(
    monkeypatch, request_type, physical_id, made_unmarked
):
    """CloudFormation makes up the id of a resource whose creation never answered."""
    function, owners = load("prepare_source"), []
    monkeypatch.setattr(function, "do", lambda _, __, owner, **___: owners.append(owner))
    monkeypatch.setattr(function, "answer", lambda *_: None)
    event = {"RequestType": request_type, "StackId": STACK, "LogicalResourceId": "Preparation"}
    if physical_id:
        event["PhysicalResourceId"] = physical_id
    function.handler(event, None)
    assert [owner.made_unmarked for owner in owners] == [made_unmarked]


class Denial:
    """AWS that denies an operation at first, and a clock that sleeping advances."""

    def __init__(self, operation: str, times: int) -> None:
        self.operation, self.times, self.asked, self.now = operation, times, 0, 0.0
        self.call: Any = BaseClient._make_api_call

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def put_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def call(client: Any, name: str, given: dict[str, Any]) -> Any:
            if name != self.operation or self.asked == self.times:
                return self.call(client, name, given)
            self.asked += 1
            raise ClientError(
                {"Error": {"Code": "AccessDenied", "Message": "not authorized"}}, name
            )

        monkeypatch.setattr(BaseClient, "_make_api_call", call)
        monkeypatch.setattr(cloudformation, "time", self)


@pytest.fixture
def prepare(tmp_path, monkeypatch):
    """Prepare a source whose publication was narrowed; return CloudFormation's answer."""
    function, answers = load("prepare_source"), []
    record = RelationRecord.of(declared(), actual(), settled=True)
    records = json.dumps(records_content({"public.orders": record})).encode()
    where = {"CreateBucketConfiguration": {"LocationConstraint": "eu-west-1"}}
    boto3.client("s3").create_bucket(Bucket="state", **where)
    boto3.client("s3").put_object(Bucket="state", Key="control/relations.json", Body=records)
    login = {"Name": "shop/source", "SecretString": '{"password": "p"}'}
    boto3.client("secretsmanager").create_secret(**login)
    for key, value in {"BUCKET": "state", "LOGIN_SECRET": "shop/source"}.items():
        monkeypatch.setenv(key, value)
    (tmp_path / "plan.json").write_text(plan().to_json())
    narrowed = PublicationState(True, False, False, {actual().id: None})
    done = SimpleNamespace(database="shop", version=170011, slot_loss="")
    for name, stand_in in {
        "PLAN": tmp_path / "plan.json",
        "connected": lambda _: nullcontext(),
        "read_publication": lambda *_: narrowed,
        "prepare_session": lambda *_, **__: done,
        "source_warnings": lambda *_, **__: [],
        "answer": lambda _, __, outcome: answers.append(outcome["Status"]),
        "answer_failure": lambda _, __, why, **___: answers.append(why),
    }.items():
        monkeypatch.setattr(function, name, stand_in)

    def run():
        event = {"RequestType": "Update", "StackId": STACK, "LogicalResourceId": "Resource"}
        function.handler(event, SimpleNamespace(log_stream_name="log"))
        return answers.pop()

    return run


@pytest.mark.parametrize("operation", ["GetSecretValue", "GetObject", "PutObject"])
def test_preparation_is_repeated_until_a_new_policy_is_in_effect(prepare, monkeypatch, operation):
    denial = Denial(operation, times=2)
    denial.put_up(monkeypatch)
    assert prepare() == "SUCCESS"
    assert denial.asked == 2


def test_preparation_that_is_denied_for_long_names_the_denial(prepare, monkeypatch):
    denial = Denial("GetObject", times=10**6)
    denial.put_up(monkeypatch)
    assert "(AccessDenied) when calling the GetObject operation" in prepare()
    assert 60 <= denial.now <= 90


@pytest.fixture
def function(monkeypatch, caplog):
    """The function with a file in its bucket and a source that connects."""
    function = load("prepare_source")
    caplog.set_level("INFO")
    where = {"CreateBucketConfiguration": {"LocationConstraint": "eu-west-1"}}
    boto3.client("s3").create_bucket(Bucket="state", **where)
    boto3.client("s3").put_object(Bucket="state", Key=f"{SOURCE_SQL_PREFIX}/k", Body=b"SELECT 1;")
    monkeypatch.setenv("BUCKET", "state")
    monkeypatch.setattr(function, "connected", lambda *_, **__: nullcontext())
    return function


@pytest.fixture
def run_sql(function, monkeypatch, caplog):
    """Run a file whose statements have this outcome; return the lines of the log."""

    def run(outcome):
        def run_script(*_, **__):
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        monkeypatch.setattr(function, "run_script", run_script)
        function.run_sql({"key": "k", "name": "x.sql", "keep_owners": False}, None)
        return [each.getMessage() for each in caplog.records if "x.sql" in each.getMessage()]

    return run


def test_sql_that_was_run_is_logged_for_a_lost_answer(run_sql):
    [line] = run_sql(ScriptResult(statements=34, copied_rows=5))
    assert "statements=34" in line


def test_sql_that_stopped_is_logged_with_its_line_without_values(run_sql):
    [line] = run_sql(InputError('x.sql:12: invalid input: "555-1"', "the 11 before it are done"))
    assert line == "stopped at x.sql:12; the 11 before it are done"


def test_sql_is_logged_by_line_before_it_runs(function, monkeypatch, caplog):
    """So the log has the last line if the function is killed."""

    class Session:
        info = SimpleNamespace(transaction_status=0)

        def execute(self, query):
            if "2" in query:
                raise MemoryError
            return self

        def fetchone(self):
            return ("off",)

    monkeypatch.setattr(function, "connected", lambda *_, **__: nullcontext(Session()))
    boto3.client("s3").put_object(
        Bucket="state", Key=f"{SOURCE_SQL_PREFIX}/k", Body=b"SELECT 1;\n\nSELECT 2;\nSELECT 3;"
    )
    with pytest.raises(MemoryError):
        function.run_sql({"key": "k", "name": "x.sql", "keep_owners": False}, None)
    assert [each.getMessage() for each in caplog.records if "x.sql" in each.getMessage()] == [
        "runs x.sql:1; all statements before it are done",
        "runs x.sql:3; all statements before it are done",
    ]
