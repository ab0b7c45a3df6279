"""A SQL file in a deployment's private source database, through its function."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from cdclake import naming
from cdclake.config.deployment import load_deployment
from cdclake.deployed.aws_calls import explained
from cdclake.deployed.aws_functions import DeployedFunction
from cdclake.errors import InputError
from cdclake.postgres.sql_script import read_script, split_script

log = logging.getLogger()

# The function's memory is 9 times this, for a dump with a character outside of Unicode's BMP: the
# text of the file and that of its rows take 4 bytes a character, and the rows are encoded again.
MAX_FILE_MB = 300


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
    function = DeployedFunction(naming.source_sql_function(deployment.prefix))
    bucket = function.variable("BUCKET")
    with explained(function.name, "call"), _uploaded(bucket, text) as key:
        event = {"key": key, "name": sql.name, "keep_owners": keep_owners}
        answer = function.call(
            event,
            "statements up to some point may have run: the last `runs FILE:LINE` in the function's"
            " log is where it ended, with the statements that are done before it; check in the"
            " source for the one at that line, then run the rest",
            if_lost="do not run the file again yet: the function may still be running, or have run"
            " it; its log shows after at most 15 minutes what was run",
            if_late="statements up to some point have run, as the function's log shows; split the"
            " rest of the file, or load it with psql from a host in the network",
        )
    if "error" in answer:
        raise InputError(answer["error"]["message"], answer["error"]["remedy"])
    return {"ok": True, **answer}


def _read(sql: Path) -> str:
    if sql.is_file() and sql.stat().st_size > MAX_FILE_MB * 1024**2:
        raise InputError(
            f"{sql} is larger than {MAX_FILE_MB} MB",
            "load it with psql from a host in the network, in parts",
        )
    return read_script(sql)


@contextmanager
def _uploaded(bucket: str, text: str) -> Iterator[str]:
    """Upload the file under a random name for the time of the call."""
    s3, key = boto3.client("s3"), f"{uuid.uuid4().hex}.sql"
    place = {"Bucket": bucket, "Key": f"{naming.SOURCE_SQL_PREFIX}/{key}"}
    written = s3.put_object(**place, Body=text.encode())
    version = {"VersionId": written["VersionId"]} if "VersionId" in written else {}
    try:
        yield key
    finally:
        try:
            _delete(s3, place, version)
        except (BotoCoreError, ClientError) as error:
            # The outcome of the call matters more: repeating a file that was run does harm.
            log.warning(
                "S3 deletes s3://%s/%s only after one to two days: %s", bucket, place["Key"], error
            )


def _delete(s3: Any, place: Mapping[str, str], version: Mapping[str, str]) -> None:
    """Delete the version that was written: after a plain deletion S3 would keep the content."""
    try:
        s3.delete_object(**place, **version)
    except ClientError as error:
        if not version or error.response["Error"]["Code"] != "AccessDenied":
            raise
        s3.delete_object(**place)
        log.warning(
            "S3 keeps the content of s3://%s/%s as an old version for up to two days (%s): delete"
            " that version, and get the right s3:DeleteObjectVersion on the folder",
            place["Bucket"],
            place["Key"],
            error,
        )
