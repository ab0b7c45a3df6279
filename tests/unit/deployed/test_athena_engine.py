"""Athena as the engine of `verify`, against moto: statements, answers, refusals, the report."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import boto3
import pytest
from moto.athena.models import QueryResults, athena_backends

from cdclake.cli.main import main
from cdclake.cli.verify_text import verify_lines
from cdclake.deployed.athena import WorkgroupClient
from cdclake.deployed.athena_engine import AthenaEngine, with_answers
from cdclake.errors import InputError
from cdclake.iceberg.dialect import TRINO
from cdclake.jobs.verify.report import Report, TableComparison
from cdclake.verify.columns import compared_columns
from cdclake.verify.statements import Comparable
from tests.unit.config.pipelines import VALID
from tests.unit.verify.lakes import make_plan, make_table

TABLE = make_table()
COLUMNS = compared_columns(TABLE, make_plan(TABLE), {}, TRINO)


@pytest.fixture
def workgroup() -> Any:
    boto3.client("athena").create_work_group(
        Name="shop-dev", Configuration={"ResultConfiguration": {"OutputLocation": "s3://results/"}}
    )
    return athena_backends["123456789012"]["eu-west-1"]


def answers(workgroup: Any, *rows: tuple[str | None, ...]) -> None:
    """Have the next query answer these rows, after the row of its columns' names."""
    listed: Any = [
        {"Data": [{} if text is None else {"VarCharValue": text} for text in row]} for row in rows
    ]
    names: Any = [{"Name": name, "Type": "varchar"} for name in rows[0]]
    workgroup.query_results_queue.append(QueryResults(rows=listed, column_info=names))


def engine() -> AthenaEngine:
    return AthenaEngine(WorkgroupClient("shop-dev"), "lake_db")


def side() -> Comparable:
    return Comparable("trino", engine().relation(TABLE), COLUMNS)


def test_numbers_are_read_from_texts(workgroup: Any) -> None:
    answers(workgroup, ("bucket", "_col1", "_col2"), ("0", "2", "576460752303423488"))
    answers(workgroup, ("h", "k", "c0", "c1", "c2"), ("7", "1", "1", None, "A"))
    with engine().open([TABLE]) as lake:
        assert lake.sums(side(), 1, None) == {0: (2, 576460752303423488)}
        [row] = lake.rows_of(side(), [7])
    assert (row.hash, row.key, row.texts) == (7, "1", ("1", None, "A"))
    sums, rows = workgroup.executions.values()
    assert 'FROM "lake_db"."t_current"' in sums.query and "h IN (7)" in rows.query
    assert sums.context == {"Database": "lake_db"}


@pytest.mark.parametrize("header", [[], ["tab_name"]])
def test_a_row_is_a_header_only_if_it_repeats_the_names(workgroup: Any, header: list[str]) -> None:
    texts = [*header, "customers", "orders"]
    rows: Any = [{"Data": [{"VarCharValue": text}]} for text in texts]
    names: Any = [{"Name": "tab_name", "Type": "string"}]
    workgroup.query_results_queue.append(QueryResults(rows=rows, column_info=names))
    client = WorkgroupClient("shop-dev")
    columns, found = client.results(client.start("SHOW TABLES"))
    assert columns == [{"name": "tab_name", "type": "string"}]
    assert found == [["customers"], ["orders"]]


def test_rows_that_lack_values_are_listed_with_their_columns(workgroup: Any) -> None:
    answers(workgroup, ("h", "k", "c0", "c1"), ("7", "1", "1", "big"))
    with engine().open([TABLE]) as lake:
        [row] = lake.incomplete(side(), TABLE)
    assert (row.place, row.texts[-1]) == ((7, "1"), "big")
    [listed] = workgroup.executions.values()
    assert '"lake_db"."t_changes"' in listed.query


def test_a_view_that_athena_refuses_is_an_error_with_its_remedy(monkeypatch: Any) -> None:
    class Refusing:
        def start_query_execution(self, **_: Any) -> Any:
            return {"QueryExecutionId": "q"}

        def get_query_execution(self, **_: Any) -> Any:
            status = {"State": "FAILED", "StateChangeReason": "VIEW_IS_STALE: t_current"}
            return {"QueryExecution": {"Status": status}}

    monkeypatch.setattr(boto3, "client", lambda _: Refusing())
    with engine().open([TABLE]) as lake, pytest.raises(InputError) as caught:
        lake.sums(side(), 1, None)
    assert "VIEW_IS_STALE" in caught.value.message
    assert "cdclake views FILE --target aws" in caught.value.remedy


def test_a_missing_view_ends_before_the_job_is_run(
    deployed: Any, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "p.yaml"
    file.write_text(VALID + "environments: {dev: {}}\n")
    words = ("verify", "--reader", "athena", "--target", "aws", "--file", str(file), "--json")

    def refusal(*more: str) -> dict[str, Any]:
        with pytest.raises(SystemExit):
            main((*words, "--environment", "dev", *more))
        return dict(json.loads(capsys.readouterr().out)["error"])

    for more in ((), ("--table", "public.orders")):
        missing = refusal(*more)
        assert "orders_current" in missing["message"]
        assert "cdclake views FILE --target aws" in missing["remedy"]
    view = {"Name": "orders_current", "TableType": "VIRTUAL_VIEW"}
    boto3.client("glue").create_table(DatabaseName="cdc_iceberg", TableInput=view)
    assert "shop-dev-verify_tables" in refusal()["message"]  # next is the job, which moto lacks


def report_of(reader: str, **counts: Any) -> dict[str, Any]:
    table = TableComparison(table="t", source="public.t", **counts)
    return Report(tables=[table], reader=reader, sample=None, rounds=1, seconds=1.5).to_json()


@pytest.mark.parametrize(
    ("of_job", "of_athena", "ok"),
    [({}, {}, True), ({"missing": 1}, {}, False), ({}, {"different": 1}, False),
     ({}, {"incomplete": 3}, True)],
)  # fmt: skip
def test_both_steps_are_in_the_report(
    of_job: dict[str, int], of_athena: dict[str, int], ok: bool
) -> None:
    report = with_answers(
        report_of("duckdb", lake_rows=5, **of_job), report_of("athena", lake_rows=4, **of_athena)
    )
    assert (report["ok"], report["reader"], report["seconds"]) == (ok, "athena", 3.0)
    [table] = report["tables"]
    assert table.keys() == asdict(TableComparison(table="t", source="public.t")).keys()
    assert table["lake_rows"] == 4
    for kind in ("missing", "different", "incomplete"):
        assert table[kind] == of_job.get(kind, 0) + of_athena.get(kind, 0)


def test_a_deployed_table_that_the_file_lacks_is_an_error() -> None:
    answered = Report(tables=[], reader="athena", sample=None, rounds=1, seconds=0.5).to_json()
    report = with_answers(report_of("duckdb", lake_rows=5), answered)
    [table] = report["tables"]
    assert not report["ok"] and table["lake_rows"] == 5
    assert "does not have this deployed table" in table["error"]


def test_incomplete_rows_are_no_silent_equality() -> None:
    *_, result = lines = list(verify_lines(report_of("athena", incomplete=2), verbose=False))
    assert result.startswith("equal except for incomplete rows in athena")
    assert lines[0].split()[-2:] == ["incomplete", "quarantined"]
    *_, result = verify_lines(report_of("athena", incomplete=2, missing=1), verbose=False)
    assert result.startswith("NOT equal in athena")
