"""`cdclake redrive --target aws`: calls until nothing is left, one answer, and how it ends."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from cdclake.cli import main as command
from cdclake.deployed import aws_functions
from cdclake.redrive.put_service import PUTS_REPEATED

PROJECT = Path(__file__).resolve().parents[3]
ANSWER: dict[str, Any] = {
    "objects": 2, "redriven": {"orders_changes": 3}, "dropped": 1, "quarantined": {"X: y": 1},
    "quarantined_of": {"customers": 1}, "too_large": {}, "more": False,
    "before": "2026-11-22T10:00:00+00:00", "after": "k",
}  # fmt: skip
Run = Callable[..., tuple[object, dict[str, Any]]]


class Lambda:
    """Lambda's client, which answers with these one after the other."""

    def __init__(self, *answers: Any) -> None:
        self.answers, self.events, self.names = iter(answers), list[Any](), set[str]()

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, Any]:
        self.names.add(FunctionName)
        self.events.append(json.loads(Payload))
        answer = next(self.answers)
        if isinstance(answer, Exception):
            raise answer
        failed = {"FunctionError": "Unhandled"} if "errorMessage" in answer else {}
        return {"Payload": io.BytesIO(json.dumps(answer).encode()), **failed}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def run_verb(
        client: Lambda, *words: str, file: str | Path = "shop_firehose"
    ) -> tuple[object, dict[str, Any]]:
        monkeypatch.setattr(aws_functions, "lambda_client", lambda: client)
        path = PROJECT / "pipelines" / f"{file}.yaml" if isinstance(file, str) else file
        where = ("--target", "aws", "--environment", "prod", "--file", str(path))
        with pytest.raises(SystemExit) as caught:
            command.main(("redrive", *where, *words, "--json"))
        return caught.value.code, json.loads(capsys.readouterr().out)

    return run_verb


def test_calls_go_on_where_the_one_before_stopped(run: Run) -> None:
    client = Lambda({**ANSWER, "more": True}, ANSWER)
    code, told = run(client)
    assert (code, told["ok"], told["objects"], told["dropped"]) == (0, True, 4, 2)
    assert (told["redriven"], told["quarantined"]) == ({"orders_changes": 6}, {"X: y": 2})
    assert told["tables"] == [
        {"table": "customers", "redriven": 0, "quarantined": 2},
        {"table": "orders", "redriven": 6, "quarantined": 0},
    ]
    [name] = client.names
    assert name.endswith("-redrive")
    assert client.events == [
        {"dry_run": False},
        {"dry_run": False, "before": ANSWER["before"], "after": "k"},
    ]


def test_a_dry_run_is_one_all_the_way(run: Run) -> None:
    client = Lambda({**ANSWER, "more": True}, ANSWER)
    code, told = run(client, "--dry-run")
    assert (code, told["dry_run"]) == (0, True)
    assert [event["dry_run"] for event in client.events] == [True, True]


def test_what_is_too_large_ends_badly(run: Run) -> None:
    code, told = run(Lambda({**ANSWER, "too_large": {"s3://b/k": 2}}))
    assert (code, told["ok"], told["too_large"]) == (4, False, {"s3://b/k": 2})
    assert "2 records stay in s3://b/k" in told["error"]["message"]


def test_a_call_that_fails_says_that_nothing_is_lost(run: Run) -> None:
    code, told = run(Lambda(ANSWER | {"more": True}, {"errorMessage": "did not accept"}))
    assert (code, told["error"]["component"].endswith("-redrive")) == (4, True)
    assert "did not accept" in told["error"]["message"]
    assert "nothing is lost" in told["error"]["remedy"]


def test_what_is_not_deployed_is_said_to_be_missing(run: Run) -> None:
    missing = ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": "no"}}, "I")
    code, told = run(Lambda(missing))
    assert (code, told["error"]["code"]) == (3, "not_running")
    assert "no function" in told["error"]["message"]


def test_put_records_are_redriven_by_their_own_function(run: Run, tmp_path: Path) -> None:
    file, both = tmp_path / "puts.yaml", tmp_path / "both.yaml"
    puts = "puts: {clicks: {columns: {id: int}, function: {mib: 0.2}}}\n"
    file.write_text(f"version: 1\nname: shop\n{puts}environments: {{prod: {{}}}}\n")
    both.write_text((PROJECT / "pipelines" / "shop_firehose.yaml").read_text() + puts)
    put: dict[str, Any] = {
        "objects": 1, "put_again": {"clicks": 2}, "kept": {}, "more": False,
        "before": ANSWER["before"], "after": "k",
    }  # fmt: skip
    client = Lambda(put)
    code, told = run(client, file=file)
    assert (code, told["put_again"], told["objects"]) == (0, {"clicks": 2}, 1)
    assert [name.endswith("-redrive-puts") for name in client.names] == [True]
    code, told = run(Lambda({**put, "kept": {"s3://b/k": 3}}), file=file)
    assert (code, told["ok"], told["kept"]) == (4, False, {"s3://b/k": 3})
    code, told = run(Lambda({"errorMessage": "did not accept"}), file=file)
    assert (code, told["error"]["remedy"].endswith(PUTS_REPEATED)) == (4, True)
    code, told = run(Lambda(ReadTimeoutError(endpoint_url="https://lambda")), file=file)
    assert (code, told["error"]["remedy"].endswith(PUTS_REPEATED)) == (4, True)
    assert "may still be running: wait" in told["error"]["remedy"]
    client = Lambda(ANSWER, put)
    code, told = run(client, file=both)
    assert (code, told["objects"], len(client.names)) == (0, 3, 2)
    assert (told["put_again"], told["redriven"]) == ({"clicks": 2}, {"orders_changes": 3})


def test_a_file_without_such_tables_has_nothing_to_redrive(run: Run) -> None:
    code, told = run(Lambda(), file="shop")
    assert (code, told["ok"], told["objects"], told["tables"]) == (0, True, 0, [])


def test_a_function_that_is_older_names_no_quarantined_table(run: Run) -> None:
    code, told = run(Lambda({k: v for k, v in ANSWER.items() if k != "quarantined_of"}))
    assert (code, told["tables"]) == (0, [{"table": "orders", "redriven": 3, "quarantined": 0}])
