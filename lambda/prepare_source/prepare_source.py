"""Makes the source database ready for the connector, and takes everything of ours out of it again.

A custom resource: what `cdclake up` does at a source that somebody else owns, by the same code. At
a creation and at each change of the plan, role, schema and publication are set as the plan says;
what speaks against it stops the deployment with all its reasons, and nothing is changed. The slot,
which the connector makes, goes with the stack and never before.

Beside it lie the plan (plan.json) and the authorities of RDS (rds-ca.pem). Environment: HOST, PORT,
DATABASE, ADMIN_SECRET, LOGIN_SECRET; neither password leaves memory.
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
log.setLevel(logging.INFO)  # below it botocore shows what secrets hold

HERE = Path(__file__).parent
AUTHORITIES = HERE / "rds-ca.pem"
PLAN = HERE / "plan.json"
# CloudFormation undoes a failed creation by a deletion, of which this says that nothing was made.
NOT_PREPARED = "not-prepared"
_CONNECT_TIMEOUT_S = 10


def handler(event: dict[str, Any], context: Any) -> None:
    """What CloudFormation calls; every way out ends with an answer, else it would wait an hour.

    The physical id of what was prepared never changes.
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
    """Prepare the source, or leave it; either may be done again."""
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
        log.error("the slot has lost its WAL: raise `aws: connect: epoch:` and make it anew")


@contextmanager
def connected() -> Iterator[Session]:
    """A session of the administrator, with a server that RDS's authorities vouch for by name."""
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
    """The login in the secret of this name or ARN."""
    found = boto3.client("secretsmanager").get_secret_value(SecretId=name)
    return dict(json.loads(found["SecretString"]))
