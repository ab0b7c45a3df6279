"""`cdclake source sql --target aws`: the file by S3, the function's answer, and its failures."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    EndpointConnectionError,
    HTTPClientError,
    IncompleteReadError,
    ReadTimeoutError,
)

from cdclake.cli import main as command
from cdclake.deployed import aws_functions
from cdclake.naming import SOURCE_SQL_PREFIX
from tests.unit.config.pipelines import VALID

DONE = {"statements": 2, "copied_rows": 5, "skipped_owners": 0}


class Function:
    """The deployed function: it notes the file that it was given, and answers as it is told."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] = DONE
        self.error: str | None = None
        self.lost: Exception | None = None
        self.ran: list[str] = []

    def get_function_configuration(self, FunctionName: str) -> dict[str, Any]:
        assert FunctionName == "shop-source-sql"
        return {"Environment": {"Variables": {"BUCKET": "state"}}}

    def invoke(self, FunctionName: str, Payload: bytes) -> dict[str, Any]:
        del FunctionName
        event = json.loads(Payload)
        place = {"Bucket": "state", "Key": f"{SOURCE_SQL_PREFIX}/{event['key']}"}
        self.ran.append(boto3.client("s3").get_object(**place)["Body"].read().decode())
        if self.lost is not None:
            raise self.lost
        answered = {"Payload": io.BytesIO(json.dumps(self.answer).encode())}
        return answered if self.error is None else {**answered, "FunctionError": self.error}


@pytest.fixture
def function(monkeypatch: pytest.MonkeyPatch) -> Function:
    made = Function()
    monkeypatch.setattr(aws_functions, "lambda_client", lambda: made)
    where = {"CreateBucketConfiguration": {"LocationConstraint": "eu-west-1"}}
    boto3.client("s3").create_bucket(Bucket="state", **where)
    kept = {"Status": "Enabled"}  # as the deployment's bucket keeps old versions
    boto3.client("s3").put_bucket_versioning(Bucket="state", VersioningConfiguration=kept)
    return made


def kept() -> dict[str, int]:
    """The numbers of versions and of delete markers that the bucket has."""
    found = boto3.client("s3").list_object_versions(Bucket="state")
    kinds = ("Versions", "DeleteMarkers")
    return {kind: len(found[kind]) for kind in kinds if kind in found}


def run(
    folder: Path, script: str, capsys: pytest.CaptureFixture[str]
) -> tuple[object, dict[str, Any]]:
    (folder / "p.yaml").write_text(VALID)
    (folder / "x.sql").write_text(script)
    where = ("--target", "aws", "--file", str(folder / "p.yaml"), "--json")
    with pytest.raises(SystemExit) as caught:
        command.main(("source", "sql", str(folder / "x.sql"), *where))
    return caught.value.code, json.loads(capsys.readouterr().out)


def test_the_file_is_run_and_removed(function, tmp_path, capsys):
    script = "CREATE TABLE t (n int);\nCOPY t FROM stdin;\n1\n\\.\n"
    code, told = run(tmp_path, script, capsys)
    assert (code, told) == (0, {"ok": True, **DONE})
    assert function.ran == [script]
    assert kept() == {}


def test_what_the_database_refuses_is_told_with_its_line(function, tmp_path, capsys):
    function.answer = {"error": {"message": "x.sql:2: no such table", "remedy": "fix it"}}
    code, told = run(tmp_path, "SELECT 1;\nSELECT 2;", capsys)
    assert (code, told["error"]["message"]) == (2, "x.sql:2: no such table")
    assert kept() == {}


def test_psql_commands_are_refused_before_anything_is_sent(function, tmp_path, capsys):
    code, told = run(tmp_path, "SELECT 1;\n\\i other.sql\n", capsys)
    assert (code, function.ran) == (2, [])
    assert told["error"]["message"].startswith("x.sql:2: ")


def test_a_call_that_takes_too_long_says_what_to_do(function, tmp_path, capsys):
    function.error = "Unhandled"
    function.answer = {"errorMessage": "Task timed out after 900.00 seconds"}
    code, told = run(tmp_path, "SELECT 1;", capsys)
    assert (code, told["error"]["component"]) == (4, "shop-source-sql")
    assert "split the rest of the file" in told["error"]["remedy"]


@pytest.mark.parametrize(
    "lost",
    [
        ReadTimeoutError(endpoint_url="https://lambda"),
        ConnectionClosedError(endpoint_url="https://lambda"),
        IncompleteReadError(actual_bytes=0, expected_bytes=9),
    ],
)
def test_a_lost_answer_does_not_advise_to_run_the_file_again(function, tmp_path, capsys, lost):
    function.lost = lost
    code, told = run(tmp_path, "SELECT 1;", capsys)
    assert (code, told["error"]["component"]) == (4, "shop-source-sql")
    assert told["error"]["remedy"].startswith("do not run the file again yet")
    assert function.ran == ["SELECT 1;"]


def test_a_call_without_a_connection_may_be_repeated(function, tmp_path, capsys):
    function.lost = EndpointConnectionError(endpoint_url="https://lambda")
    _, told = run(tmp_path, "SELECT 1;", capsys)
    assert "run this again" in told["error"]["remedy"]


def test_a_failed_function_does_not_advise_to_run_all_again(function, tmp_path, capsys):
    function.error = "Unhandled"
    function.answer = {"errorMessage": "OperationalError: server closed the connection"}
    _, told = run(tmp_path, "SELECT 1;", capsys)
    assert "statements up to some point may have run" in told["error"]["remedy"]


def test_a_file_that_is_not_deleted_does_not_hide_the_outcome(
    function, tmp_path, capsys, caplog, monkeypatch
):
    s3, client = boto3.client("s3"), boto3.client

    def fail(**_: str) -> None:
        raise HTTPClientError(error="offline")

    monkeypatch.setattr(s3, "delete_object", fail)
    monkeypatch.setattr(boto3, "client", lambda name: s3 if name == "s3" else client(name))
    assert run(tmp_path, "SELECT 1;", capsys) == (0, {"ok": True, **DONE})
    assert "offline" in caplog.text
    function.lost = ReadTimeoutError(endpoint_url="https://lambda")
    _, told = run(tmp_path, "SELECT 1;", capsys)
    assert told["error"]["remedy"].startswith("do not run the file again yet")


def test_a_version_that_may_not_be_deleted_is_named(
    function, tmp_path, capsys, caplog, monkeypatch
):
    s3, client = boto3.client("s3"), boto3.client
    delete = s3.delete_object

    def refuse(**given: str) -> None:
        if "VersionId" in given:
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "DeleteObject")
        delete(**given)

    monkeypatch.setattr(s3, "delete_object", refuse)
    monkeypatch.setattr(boto3, "client", lambda name: s3 if name == "s3" else client(name))
    assert run(tmp_path, "SELECT 1;", capsys) == (0, {"ok": True, **DONE})
    assert kept() == {"Versions": 1, "DeleteMarkers": 1}
    assert "as an old version for up to two days" in caplog.text
    assert "s3:DeleteObjectVersion" in caplog.text
