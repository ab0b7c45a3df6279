"""A SQL file in a deployment's private source database, through its function."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from cdclake import naming
from cdclake.config.deployment import load_deployment
from cdclake.deployed.aws_calls import explained
from cdclake.errors import ComponentFailed, InputError
from cdclake.postgres.sql_script import read_script, split_script

# Wait as long as Lambda lets a call run, and never repeat it: statements may have run.
_CALL = Config(read_timeout=910, retries={"total_max_attempts": 1})
_MOST_BYTES = 500 * 1024**2


def run_source_sql(
    sql: Path, file: Path, environment: str | None, *, keep_owners: bool
) -> dict[str, Any]:
    """Run the SQL file as the source's administrator; return what was run.

    The file is checked before anything is sent. Raises InputError with file and line for psql's
    commands and at the first statement that fails, and ComponentFailed if the call fails or takes
    longer than 15 minutes.
    """
    text = _read(sql)
    for _ in split_script(text, sql.name):
        pass
    deployment = load_deployment(file, environment)
    name = naming.source_sql_function(deployment.prefix)
    with explained(name, "reach Lambda for"):
        client = boto3.client("lambda", config=_CALL)
    with explained(name, "find the bucket for"):
        found = client.get_function_configuration(FunctionName=name)
    bucket = found["Environment"]["Variables"]["BUCKET"]
    with explained(name, "call"), _uploaded(bucket, text) as key:
        event = {"key": key, "name": sql.name, "keep_owners": keep_owners}
        called = client.invoke(FunctionName=name, Payload=json.dumps(event).encode())
        answer: dict[str, Any] = json.loads(called["Payload"].read())
    return {"ok": True, **_checked(name, called, answer)}


def _read(sql: Path) -> str:
    if sql.is_file() and sql.stat().st_size > _MOST_BYTES:
        raise InputError(
            f"{sql} is larger than {_MOST_BYTES // 1024**2} MB",
            "load it with psql from a host in the network, in parts",
        )
    return read_script(sql)


@contextmanager
def _uploaded(bucket: str, text: str) -> Iterator[str]:
    """Upload the file under a random name for the time of the call."""
    s3, key = boto3.client("s3"), f"{uuid.uuid4().hex}.sql"
    place = {"Bucket": bucket, "Key": f"{naming.SOURCE_SQL_PREFIX}/{key}"}
    s3.put_object(**place, Body=text.encode())
    try:
        yield key
    finally:
        s3.delete_object(**place)


def _checked(name: str, called: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    if "FunctionError" in called:
        message = str(answer.get("errorMessage"))
        late = "Task timed out" in message
        raise ComponentFailed(
            f"{name} failed: {message}",
            "statements up to some point have run; split the file, or load it with psql from a host"
            " in the network"
            if late
            else "read the function's log, then run it again",
            component=name,
        )
    if "error" in answer:
        raise InputError(answer["error"]["message"], answer["error"]["remedy"])
    return answer
