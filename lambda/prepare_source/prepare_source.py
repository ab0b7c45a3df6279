"""Custom resource that prepares the source database for the connector, and cleans up at deletion.

It runs the code that `cdclake up` runs for an external source. At creation and at each change of
the plan it sets up role, schema and publication. If anything prevents this, the deployment fails
with all reasons and nothing is changed. The slot, which the connector creates, is dropped with the
stack, not earlier.

The zip contains the plan (plan.json) and the RDS certificate authorities (rds-ca.pem). Environment:
HOST, PORT, DATABASE, ADMIN_SECRET, LOGIN_SECRET. Passwords are only held in memory.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import psycopg

from cdclake.cloudformation import answer, answer_failure
from cdclake.errors import CdcError
from cdclake.plan import Plan
from cdclake.postgres.source import SESSION_SETTINGS, Session, leave_session, prepare_session

log = logging.getLogger()
log.setLevel(logging.INFO)  # at DEBUG botocore logs the values of secrets

HERE = Path(__file__).parent
AUTHORITIES = HERE / "rds-ca.pem"
PLAN = HERE / "plan.json"
# After a failed creation CloudFormation sends a deletion with this id: there is nothing to delete.
NOT_PREPARED = "not-prepared"
_CONNECT_TIMEOUT_S = 10


def handler(event: dict[str, Any], context: Any) -> None:
    """Handle a request of CloudFormation and always answer: it would wait an hour otherwise.

    The physical id of a prepared source never changes.
    """
    prepared = event.get("PhysicalResourceId", event["LogicalResourceId"])
    try:
        do(event["RequestType"], prepared)
    except Exception as error:
        expected = isinstance(error, CdcError)
        log.error("%s failed: %s", event["RequestType"], error, exc_info=not expected)
        why = str(error) if expected else type(error).__name__
        made = NOT_PREPARED if event["RequestType"] == "Create" else prepared
        answer_failure(event, made, why, log_stream=context.log_stream_name)
    else:
        answer(event, prepared, {"Status": "SUCCESS"})


def do(request: str, prepared: str) -> None:
    """Prepare the source, or clean it up; both are idempotent."""
    plan = Plan.from_json(PLAN.read_text(encoding="utf-8"))
    if request == "Delete":
        if prepared != NOT_PREPARED:
            with connected() as session:
                leave_session(session, plan)
        return
    password = secret(os.environ["LOGIN_SECRET"])["password"]
    with connected() as session:
        done = prepare_session(
            session, plan, embedded=False, role_password=password, own_stream=request == "Update"
        )
    log.info("prepared %s of PostgreSQL %s", done.database, done.version)
    if done.slot_lost:
        log.error("the slot has lost its WAL: drop it and increase `aws: connect: epoch:`")


@contextmanager
def connected() -> Iterator[Session]:
    """Yield an administrator's session; verify the server's certificate and host name."""
    admin = secret(os.environ["ADMIN_SECRET"])
    with psycopg.connect(
        host=os.environ["HOST"],
        port=os.environ["PORT"],
        dbname=os.environ["DATABASE"],
        user=admin["username"],
        password=admin["password"],
        sslmode="verify-full",
        sslrootcert=str(AUTHORITIES),
        autocommit=True,
        connect_timeout=_CONNECT_TIMEOUT_S,
        application_name="cdclake",
    ) as connection:
        for setting in SESSION_SETTINGS:
            connection.execute(setting)
        yield connection


def secret(name: str) -> dict[str, str]:
    """Return the credentials in the secret with this name or ARN."""
    found = boto3.client("secretsmanager").get_secret_value(SecretId=name)
    return dict(json.loads(found["SecretString"]))
