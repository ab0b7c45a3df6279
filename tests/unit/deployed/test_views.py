"""`cdclake views`: what is printed is what the workgroup is told, against moto."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from moto.athena.models import QueryResults, athena_backends

from cdclake.cli import main as command
from tests.unit.config.pipelines import VALID, replaced

WORKGROUP = "shop-dev"
APPLIED_US = 1_764_000_000_123_456


@pytest.fixture
def run(capsys: Any, tmp_path: Any) -> Any:
    file = tmp_path / "p.yaml"
    file.write_text(VALID + "environments: {dev: {}}\n")

    def run_verb(*arguments: str, text: str | None = None) -> tuple[object, dict[str, Any]]:
        if text is not None:
            file.write_text(text)
        with pytest.raises(SystemExit) as caught:
            command.main(("views", str(file), *arguments, "--json"))
        return caught.value.code, json.loads(capsys.readouterr().out)

    return run_verb


@pytest.fixture
def workgroup() -> Any:
    boto3.client("athena").create_work_group(
        Name=WORKGROUP,
        Configuration={"ResultConfiguration": {"OutputLocation": "s3://results/"}},
    )
    return athena_backends["123456789012"]["eu-west-1"]


@pytest.fixture
def control() -> Any:
    """The control objects, which a deployed job names; a function writes one."""
    where = {"LocationConstraint": "eu-west-1"}
    s3 = boto3.client("s3")
    s3.create_bucket(Bucket="state", CreateBucketConfiguration=where)
    boto3.client("glue").create_job(
        Name=f"{WORKGROUP}-stream_changes",
        Role="r",
        Command={"Name": "gluestreaming", "ScriptLocation": "s3://state/x.py"},
        DefaultArguments={"--control": "s3://state/control"},
    )

    def write(name: str, content: object) -> None:
        s3.put_object(Bucket="state", Key=f"control/{name}", Body=json.dumps(content))

    return write


def test_the_statements_are_printed(run):
    code, told = run("--table", "public.orders")
    assert (code, told["ok"]) == (0, True)
    assert [view["view"] for view in told["views"]] == ["orders_current", "orders_history"]
    assert all(view["sql"].startswith("CREATE OR REPLACE VIEW ") for view in told["views"])


def test_the_workgroup_runs_what_is_printed(run, workgroup, control):
    printed = run()[1]["views"]
    code, told = run("--target", "aws", "--environment", "dev")
    assert (code, told["ok"]) == (0, True)
    assert [view["view"] for view in told["views"]] == [view["view"] for view in printed]
    executions = list(workgroup.executions.values())
    created = [each.query for each in executions if each.query.startswith("CREATE ")]
    assert created == [view["sql"] for view in printed]
    assert {each.workgroup.name for each in executions} == {WORKGROUP}


def test_the_views_skip_what_is_applied_already(run, workgroup, control):
    answer = ("ingested", str(APPLIED_US))
    rows = [{"Data": [{"VarCharValue": text}]} for text in answer]
    columns = [{"Name": "ingested", "Type": "bigint"}]
    workgroup.query_results_queue.append(QueryResults(rows=rows, column_info=columns))
    run("--target", "aws", "--environment", "dev", "--table", "public.orders")
    asked, current, history = (each.query for each in workgroup.executions.values())
    assert '"orders$snapshots"' in asked
    assert f"CAST({APPLIED_US} AS decimal(38,0))" in current
    assert str(APPLIED_US) not in history


def test_views_have_the_types_that_the_source_has_widened(run, workgroup, control):
    text = replaced("note: text", "note: numeric(6,2)") + "environments: {dev: {}}\n"
    printed = run(text=text)[1]["views"]
    control("widened.json", {"tables": {"orders": {"note": "numeric(9,2)"}}})
    run("--target", "aws", "--environment", "dev", text=text)
    created = [each.query for each in workgroup.executions.values()][-2:]
    assert "decimal(6,2)" in printed[1]["sql"]
    assert created == [view["sql"].replace("decimal(6,2)", "decimal(9,2)") for view in printed]


def with_athena(monkeypatch: pytest.MonkeyPatch, athena: Any) -> None:
    client = boto3.client
    monkeypatch.setattr(boto3, "client", lambda name: athena if name == "athena" else client(name))


def test_a_view_without_a_bound_is_created_with_a_warning(run, control, monkeypatch):
    class WithoutMetadata:
        def start_query_execution(self, *, QueryString: str, **_: Any) -> Any:
            return {"QueryExecutionId": QueryString}

        def get_query_execution(self, *, QueryExecutionId: str) -> Any:
            failed = {"State": "FAILED", "StateChangeReason": "no $snapshots"}
            status = {"State": "SUCCEEDED"} if "CREATE" in QueryExecutionId else failed
            return {"QueryExecution": {"Status": status}}

    with_athena(monkeypatch, WithoutMetadata())
    code, told = run("--target", "aws", "--environment", "dev", "--table", "orders")
    assert (code, told["ok"]) == (0, True)
    current, history = told["views"]
    assert "the metadata of orders: no $snapshots" in current["warning"]
    assert "warning" not in history


def test_a_statement_that_athena_refuses_is_named_with_its_reason(run, control, monkeypatch):
    class Refusing:
        def start_query_execution(self, **_: Any) -> Any:
            return {"QueryExecutionId": "q"}

        def get_query_execution(self, **_: Any) -> Any:
            status = {"State": "FAILED", "StateChangeReason": "TABLE_NOT_FOUND: orders"}
            return {"QueryExecution": {"Status": status}}

    with_athena(monkeypatch, Refusing())
    code, told = run("--target", "aws", "--environment", "dev", "--table", "orders")
    assert (code, told["ok"]) == (4, False)
    assert {view["error"] for view in told["views"]} == {"TABLE_NOT_FOUND: orders"}
    assert told["error"]["message"] == "Athena did not create orders_current, orders_history"


DERIVED = "derived: {notes: {sql: 'SELECT order_id FROM orders_current', key: [order_id]}}\n"


def with_readers(*readers: str) -> str:
    lake = f"lake: {{database: lake_db, readers: [{', '.join(readers)}]}}\n"
    return VALID + lake + "environments: {dev: {}}\n"


def test_without_athena_and_trino_among_the_readers_there_are_none(run):
    code, told = run(text=with_readers("spark"))
    assert (code, told["error"]["code"]) == (2, "bad_input")
    assert "does not list Athena or Trino" in told["error"]["message"]


def test_views_are_printed_for_trino_alone_and_created_by_athena_only(run, control):
    text = with_readers("trino")
    code, told = run(text=text + DERIVED)
    assert (code, told["derived"]) == (0, []), "CTAS and UNLOAD are Athena's"
    of_athena = run(text=with_readers("athena") + DERIVED)[1]
    assert (told["views"], len(of_athena["derived"])) == (of_athena["views"], 1)
    code, told = run("--target", "aws", "--environment", "dev", text=text)
    assert (code, told["error"]["code"]) == (2, "bad_input")
    assert "does not list Athena among" in told["error"]["message"]
    assert "prints the views for Trino" in told["error"]["remedy"]
