"""Custom resource that prepares the source database for the connector, and cleans up at deletion.

It runs the code that `cdclake up` runs for an external source. At creation and at each change of
the plan it sets up role, schema and publication. If anything prevents this, the deployment fails
with all reasons and nothing is changed. Before it repairs the publication, it records the tables
whose changes were omitted: `check` reports these until they are read again. A new epoch reads all
tables, maybe of another server, so it replaces the records; a rollback restores them. The slot,
which the connector creates, is dropped with the stack, not earlier.

`check` is deployed as a second function that a schedule invokes. It compares the source's relations
with the records that the lake keeps of them, and its columns with the plan. It notes widened types
and undeclared columns for the stream, and publishes how many tables and columns differ.
`run_sql` is a third function, which runs an operator's SQL file as the administrator.

The zip contains the plan (plan.json) and the RDS certificate authorities (rds-ca.pem). Environment:
HOST, PORT, DATABASE, ADMIN_SECRET, LOGIN_SECRET and BUCKET of the control objects; of `check`
without ADMIN_SECRET, but with DIMENSION of the metrics; of `run_sql` without LOGIN_SECRET.
Passwords are only held in memory.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, LiteralString

import boto3
import psycopg
from botocore.exceptions import ClientError

from cdclake import metrics, naming
from cdclake.cloudformation import answer, answer_failure, repeat_denied
from cdclake.control_writer import ControlWriter
from cdclake.errors import CdcError
from cdclake.iceberg.widening import with_widened
from cdclake.plan import Plan, Table
from cdclake.postgres.deployed_remedies import deployed_remedy
from cdclake.postgres.new_columns import find_new_columns, lines_to_write
from cdclake.postgres.ownership import Owner
from cdclake.postgres.relation_check import (
    Records,
    compare_relations,
    merged_records,
    parse_records,
    read_source,
    records_content,
    with_omissions,
)
from cdclake.postgres.relations import SourceState
from cdclake.postgres.run_script import run_script
from cdclake.postgres.session import Session
from cdclake.postgres.source import (
    SESSION_SETTINGS,
    leave_session,
    prepare_session,
    read_publication,
)
from cdclake.postgres.source_warnings import source_warnings
from cdclake.postgres.sql_script import split_script
from cdclake.postgres.widened import find_widened
from cdclake.source_notes import (
    note_new_columns,
    note_widened,
    read_widened,
    widening_warnings,
)

log = logging.getLogger()
log.setLevel(logging.INFO)  # at DEBUG botocore logs the values of secrets

HERE = Path(__file__).parent
AUTHORITIES = HERE / "rds-ca.pem"
PLAN = HERE / "plan.json"
# After a failed creation CloudFormation sends a deletion with this id: there is nothing to delete.
NOT_PREPARED = "not-prepared"
_CONNECT_TIMEOUT_S = 10


def handler(event: dict[str, Any], context: Any) -> None:
    """Handle a request of CloudFormation and always answer: it waits for its timeout otherwise.

    The physical id of a prepared source never changes.
    """
    prepared = event.get("PhysicalResourceId", event["LogicalResourceId"])
    try:
        repeat_denied(
            lambda: do(event["RequestType"], prepared, owner_of(event), epochs=epochs_of(event))
        )
    except Exception as error:
        expected = isinstance(error, CdcError)
        log.error("%s failed: %s", event["RequestType"], error, exc_info=not expected)
        # Texts of other errors may quote a value.
        why = str(error) if isinstance(error, CdcError | ClientError) else type(error).__name__
        made = NOT_PREPARED if event["RequestType"] == "Create" else prepared
        answer_failure(event, made, why, log_stream=context.log_stream_name)
    else:
        answer(event, prepared, {"Status": "SUCCESS"})


def do(request: str, prepared: str, owner: Owner, *, epochs: tuple[int, int] | None = None) -> None:
    """Prepare the source, or clean it up; both are idempotent. `epochs`: before and now."""
    before, now = epochs or (0, 0)
    plan = Plan.from_json(PLAN.read_text(encoding="utf-8"))
    if request == "Delete":
        if prepared != NOT_PREPARED:
            with connected("ADMIN_SECRET") as session:
                leave_session(session, plan, owner)
        return
    password = secret(os.environ["LOGIN_SECRET"])["password"]
    if now < before:
        restore_former_records(before)
    with connected("ADMIN_SECRET") as session:
        note_omissions(session, plan)
        done = prepare_session(session, plan, embedded=False, owner=owner, role_password=password)
        if now > before:
            keep_former_records(now)
            record_again(session, plan)
        warnings = source_warnings(session, plan, embedded=False)
    log.info("prepared %s of PostgreSQL %s", done.database, done.version)
    if done.slot_loss:
        log.error("the slot %s; follow the runbook lost-slot", done.slot_loss)
    for warning in warnings:
        log.warning("%s; %s", warning, warning.remedy)


def note_omissions(session: Session, plan: Plan) -> None:
    """Record the tables whose changes the publication omits; without a record they are new."""
    publication = read_publication(session, plan.source_object)
    while True:
        records, etag = stored_records(())  # also those of a table that leaves the plan
        marked = with_omissions(publication, plan.tables, records)
        if marked == records or put_records(marked, etag):
            return


def epochs_of(event: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the epochs before and now; None if an earlier version's deployment has no number."""
    before = event.get("OldResourceProperties", {}).get("Epoch")
    now = event.get("ResourceProperties", {}).get("Epoch")
    return None if before is None or now is None else (int(before), int(now))


def keep_former_records(epoch: int) -> None:
    """Keep the records from before the epoch; a repeated call leaves those that it has kept."""
    control = control_objects()
    kept, stored = control.read(naming.FORMER_RELATIONS), control.read(naming.RELATIONS)
    if stored is not None and (kept is None or kept.content["epoch"] != epoch):
        former = {"epoch": epoch, "relations": stored.content}
        control.write(naming.FORMER_RELATIONS, former)


def restore_former_records(epoch: int) -> None:
    """Restore the records from before the epoch, which CloudFormation has rolled back."""
    control = control_objects()
    kept = control.read(naming.FORMER_RELATIONS)
    if kept is not None and kept.content["epoch"] == epoch:
        control.write(naming.RELATIONS, kept.content["relations"])
        control.write(naming.FORMER_RELATIONS, {"epoch": None})
        log.warning("epoch %d was rolled back: restored the records from before it", epoch)


def record_again(session: Session, plan: Plan) -> None:
    """Replace the records by the tables as they are now, before the connector reads them all."""
    records = merged_records(read_source(session, plan, {}), plan.tables, {})
    while not put_records(records, stored_records(())[1]):
        log.info("another writer has stored records meanwhile")


def owner_of(event: Mapping[str, Any]) -> Owner:
    """Return the deployment as an owner, from its stack's ARN.

    The id has no random part, so that a stack that is created again is still the owner. It made
    objects without a mark if its creation has answered: a deletion after one that could not has an
    id that CloudFormation has generated.
    """
    has_answered = event.get("PhysicalResourceId") == event["LogicalResourceId"]
    region, account, resource = event["StackId"].split(":", 5)[3:]
    name = resource.split("/")[1]
    return Owner(
        id=f"aws:{account}:{region}:{name}",
        name=f"the stack {name} of account {account} in {region}",
        made_unmarked=event["RequestType"] != "Create" and has_answered,
    )


def check(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Report the tables whose relations differ from the records, and record new ones."""
    del event, context
    plan = Plan.from_json(PLAN.read_text(encoding="utf-8"))
    records, etag = stored_records(plan.tables)
    with connected("LOGIN_SECRET") as session:
        source = read_source(session, plan, records)
    added = note_columns(plan, source)
    changes = compare_relations(source, plan.tables, records)
    for table in plan.tables:
        for change in changes.get(table.source, ()):
            remedy = deployed_remedy(table, change)
            log.error("%s: %s: %s; %s", table.source, change.kind, change.message, remedy)
    merged = merged_records(source, plan.tables, records)
    if merged != records:
        put_records(merged, etag)  # if another writer was first, the next check records it
    changed = sum(bool(found) for found in changes.values())
    publish({metrics.CHANGED_RELATIONS: changed, metrics.NEW_COLUMNS: added})
    return {"changed": changed, "new_columns": added}


def stored_records(tables: Iterable[Table]) -> tuple[Records, str | None]:
    """Return the records that are these tables', and their object's ETag; None if there is none."""
    stored = control_objects().read(naming.RELATIONS)
    return ({}, None) if stored is None else (parse_records(stored.content, tables), stored.etag)


def put_records(records: Records, etag: str | None) -> bool:
    """Put the records if their object's ETag is still this one; return False if it is not."""
    content = records_content(records)
    return control_objects().write_if(naming.RELATIONS, content, etag) is not None


def run_sql(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Run the SQL file in S3 as the administrator (`cdclake source sql --target aws`).

    `event` has the object's `key` below `source-sql/`, the file's `name` for errors, and
    `keep_owners`. Return what was run, or `error` with file, line and remedy.
    """
    del context
    bucket, key = os.environ["BUCKET"], f"{naming.SOURCE_SQL_PREFIX}/{event['key']}"
    found = boto3.client("s3").get_object(Bucket=bucket, Key=key)
    text = found["Body"].read().decode("utf-8")
    try:
        # The file's names are found as by psql.
        with connected("ADMIN_SECRET", settings=()) as session:
            done = run_script(
                session,
                split_script(text, event["name"]),
                event["name"],
                keep_owners=event["keep_owners"],
            )
    except CdcError as error:
        # Without the reason, which may quote a value; the caller gets it, if it still waits.
        log.error("stopped at %s; %s", error.message.partition(": ")[0], error.remedy)
        return {"error": {"message": error.message, "remedy": error.remedy}}
    log.info("ran %s: %s", event["name"], done)
    return asdict(done)


def note_columns(plan: Plan, source: SourceState) -> int:
    """Note widened types and undeclared columns for the stream; return the number of the latter."""
    control = control_objects()
    plan = with_widened(plan, read_widened(control))
    widened = find_widened(plan, source.tables)
    for warning in widening_warnings(plan, widened):
        log.warning("%s", warning)
    note_widened(control, plan, widened)
    found = find_new_columns(plan, source.tables)
    for table, columns in found.items():
        for column, kind in columns.items():
            remedy = lines_to_write(column, kind)
            log.warning("%s: column %r is not declared; %s", table, column, remedy)
    note_new_columns(control, plan, found)
    return sum(map(len, found.values()))


def publish(values: Mapping[metrics.Metric, int]) -> None:
    """Publish the metrics on every call: missing data raises an alarm."""
    metrics.publish(boto3.client("cloudwatch"), values, os.environ["DIMENSION"])


def control_objects() -> ControlWriter:
    """Return the control objects of the deployment, as the jobs read them."""
    uri = f"s3://{os.environ['BUCKET']}/{naming.CONTROL_PREFIX}"
    return ControlWriter(boto3.client("s3"), uri)


@contextmanager
def connected(
    login: str, settings: Sequence[LiteralString] = SESSION_SETTINGS
) -> Iterator[psycopg.Connection[Any]]:
    """Yield a session with the login in this variable's secret; verify certificate and host."""
    user = secret(os.environ[login])
    with psycopg.connect(
        host=os.environ["HOST"],
        port=os.environ["PORT"],
        dbname=os.environ["DATABASE"],
        user=user["username"],
        password=user["password"],
        sslmode="verify-full",
        sslrootcert=str(AUTHORITIES),
        autocommit=True,
        connect_timeout=_CONNECT_TIMEOUT_S,
        application_name="cdclake",
        client_encoding="UTF8",  # with a server's SQL_ASCII psycopg returns texts as bytes
    ) as connection:
        for setting in settings:
            connection.execute(setting)
        yield connection


def secret(name: str) -> dict[str, str]:
    """Return the credentials in the secret with this name or ARN."""
    found = boto3.client("secretsmanager").get_secret_value(SecretId=name)
    return dict(json.loads(found["SecretString"]))
