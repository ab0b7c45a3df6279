"""Lifecycle of a lake: up, down, pause, resume (contract, section 5)."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from cdclake import naming
from cdclake.debezium.connector import SourceAddress, connector_config, queue_bytes
from cdclake.debezium.worker import password_of, salt_of
from cdclake.errors import ComponentFailed
from cdclake.iceberg.schemas import all_schemas
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.runtime.source import write_marker
from cdclake.local.bulk_load import end_epoch, load_and_hand_over
from cdclake.local.components import connect
from cdclake.local.firehose import component
from cdclake.local.lake import stack
from cdclake.local.lake.connector import ConnectorClient
from cdclake.local.lake.delivered_offsets import arrived_offsets
from cdclake.local.lake.lake import (
    BUCKET,
    LakeState,
    LocalLake,
    create_bucket_and_database,
    describe_lake,
    source_parts,
)
from cdclake.local.lake.source import prepare_source, remove_from_source
from cdclake.local.lake.source_credentials import keep_login, keep_salt
from cdclake.local.lake.source_relations import (
    CheckedRelations,
    check_relations,
    keep_what_is_read,
    settle_relations,
)
from cdclake.local.lake.spark_jobs import STREAM
from cdclake.local.lake.topics import MarkerReader, create_topics
from cdclake.local.operations_backend import local_operations, run_stream
from cdclake.local.plan_diff import PlanDiff, compare, join_tables
from cdclake.local.process.home import Home
from cdclake.local.process.supervisor_client import log_tail
from cdclake.local.web_logs import web_log_lifecycle as web_logs
from cdclake.plan import Plan
from cdclake.postgres.source import Prepared

READY_TIMEOUT_S = 300.0  # for a cold JVM on a busy machine; an idle one takes a tenth
_POLL_S = 0.5


def up_bare(home: Home, plan: Plan | None, dsn: str | None) -> dict[str, Any]:
    """Start everything except connector and stream, and return the answer of `up`."""
    state = LakeState.load(home)
    endpoints = stack.bring_up(home, embedded_postgres=dsn is None)
    if dsn is not None:
        home.remember("source_dsn", dsn)
    database = state.database
    if plan is not None and plan.tables and endpoints.source is not None and not state.epoch:
        database = plan.source_database
        _create_database(make_conninfo(**asdict(endpoints.source)), database)
    state = replace(state, external=dsn is not None, database=database)
    state.save(home)
    source = asdict(endpoints.source) if endpoints.source else source_parts(str(dsn))
    if endpoints.source is not None and database:
        source["dbname"] = database
    return _answer(endpoints, source, [])


def up(home: Home, plan: Plan, pipeline_file: str, dsn: str | None) -> dict[str, Any]:
    """Start or repair the lake with `plan`, and return when a marker has passed through it."""
    component.asked_trouble()
    before = LakeState.load(home)
    web_logs.refuse_to_leave(home, before, plan)
    # A lake with only web logs has never streamed: its first tables are added as to a new lake.
    streamed = Plan.from_json(before.plan) if before.plan else None
    change = compare(streamed if streamed and streamed.tables else None, plan)
    endpoints = stack.bring_up(home, embedded_postgres=dsn is None)
    if dsn is not None:
        home.remember("source_dsn", dsn)
    state = replace(
        before, external=dsn is not None, plan=plan.to_json(), pipeline_file=pipeline_file,
        paused=False,
    )  # fmt: skip
    if endpoints.source is not None:
        server = make_conninfo(**asdict(endpoints.source))
        state = replace(state, database=_existing_database(server, plan, before))
    lake = describe_lake(home, state)
    local_operations(lake).refuse_if_being_read(() if change.is_first else change.joining)
    being_read = local_operations(lake).backend.tables_being_read()
    checked = replace(check_relations(lake, change.kept), being_read=being_read)
    state = _start_streaming(lake, change, checked)
    state.save(home)
    answer = _answer(endpoints, source_parts(lake.dsn), [_table(table) for table in plan.tables])
    answer["relation_changes"] = checked.to_json()
    if plan.streams:
        answer |= {"firehose": endpoints.firehose, "web_logs": web_logs.described(plan)}
    return answer


def _start_streaming(lake: LocalLake, change: PlanDiff, checked: CheckedRelations) -> LakeState:
    """Start streaming: prepare the source, start connector and stream, and await a marker."""
    plan, state = lake.plan, lake.state
    running = stack.wants(lake.home, STREAM)
    if change.is_first and not running:
        _drop_forgotten_slot(lake)
    prepared = _prepare(lake, change)
    change = change.found(prepared.renamed, prepared.unpublished | checked.to_resync)
    connector = ConnectorClient(lake.endpoints.connect, plan)
    if prepared.slot_lost or state.loading or not prepared.slot_exists:
        # A new epoch: a full snapshot, whose rows must take precedence over everything before.
        connector.forget_offsets()
        if prepared.slot_lost or state.loading:
            end_epoch(lake)
        is_bulk = plan.snapshot_mode == "bulk"
        state = replace(state, epoch=state.epoch + 1, loading=is_bulk)
        change = change.all_snapshotted()
    _save_but_the_plan(lake.home, state)
    lake = replace(lake, state=state)
    create_topics(lake.kafka, plan)
    create_bucket_and_database(lake)
    web_logs.prepare(lake)
    join_tables(lake, change, write_plan=lambda: _write_plan(lake))
    markers = MarkerReader(lake.kafka, plan)
    try:
        _start_and_record(lake, connector, change, checked)
        state = replace(state, loading=False)
        state.save(lake.home)
        run_stream(lake, READY_TIMEOUT_S)
        _await_marker(lake, connector, markers)
    finally:
        markers.close()
    component.run(lake)
    _read_rewritten_again(lake)
    return state


def _prepare(lake: LocalLake, change: PlanDiff) -> Prepared:
    return prepare_source(
        lake.dsn,
        lake.plan,
        embedded=not lake.state.external,
        role_password=lake.home.secret("replication_password"),
        own_stream=lake.state.epoch > 0,
        kept=frozenset(table.source for table in change.kept),
    )


def _start_and_record(
    lake: LocalLake, connector: ConnectorClient, change: PlanDiff, checked: CheckedRelations
) -> None:
    """Start the connector, and record the relations that it reads.

    Before a full snapshot, which may be interrupted; after a signal, which must be written first.
    """
    if not change.by_signal:
        keep_what_is_read(lake, checked, first=True)
    _start_connector(lake, connector, change)
    if change.by_signal:
        keep_what_is_read(lake, checked, first=False)


def _read_rewritten_again(lake: LocalLake) -> None:
    """Resync tables that were rewritten while the connector took its first snapshot."""
    checked = settle_relations(lake)
    for table in lake.plan.tables:
        if any(c.resync and c.kind == "rewritten" for c in checked.changes[table.source]):
            local_operations(lake).resync(table, wait=False)


def _save_but_the_plan(home: Home, state: LakeState) -> None:
    """Save the state with the old plan: if `up` dies now, the next one requests snapshots again."""
    replace(state, plan=LakeState.load(home).plan or state.plan).save(home)


def _start_connector(lake: LocalLake, connector: ConnectorClient, change: PlanDiff) -> None:
    """Run the connector with the plan's tables, after the bulk load if the epoch has one."""
    address = _source_address(lake)
    salt = salt_of(keep_salt(lake.plan, lake.mask_salt))
    config = connector_config(
        lake.plan,
        address,
        epoch=lake.state.epoch,
        mask_salt=salt,
        max_queue_bytes=queue_bytes(connect.HEAP_MB * 1024**2),
    )
    if lake.state.loading:
        load_and_hand_over(lake, connector, config, address)
        return
    if change.changes_tables:
        # With the connector stopped, only a task that knows the new tables can read the signal.
        connector.stop()
        if change.widened:
            component.deliver_what_was_sent(lake)
    component.end_that_of_before(lake)
    if change.changes_tables:
        connector.set_config(config)
        change.request_snapshots(lake)
    connector.start(config)


def _source_address(lake: LocalLake) -> SourceAddress:
    source = source_parts(lake.dsn)
    secret = keep_login(lake.plan, lake.home.secret("replication_password"))
    return SourceAddress(
        host=source["host"],
        port=source["port"],
        database=source["dbname"],
        user=lake.plan.source_object,
        password=password_of(secret),
        sslmode="prefer",
    )


def _await_marker(lake: LocalLake, connector: ConnectorClient, markers: MarkerReader) -> None:
    """Wait until a marker written to the source has passed through the whole pipeline."""
    marker = os.urandom(8).hex()
    write_marker(lake.dsn, marker)
    offset: int | None = None

    def came_through() -> bool:
        nonlocal offset
        if offset is None:
            offset = markers.find(marker)
        if offset is None:
            return False
        progress = Progress.load(lake.control)
        return progress.heartbeat_offsets.get(0, 0) > offset and _all_objects_exist(lake)

    _await(lake, connector, came_through)


def _all_objects_exist(lake: LocalLake) -> bool:
    tables = lake.client("glue").get_paginator("get_tables")
    names = {
        entry["Name"]
        for page in tables.paginate(DatabaseName=lake.plan.lake_database)
        for entry in page["TableList"]
    }
    return {schema.name for schema in all_schemas(lake.plan)} <= names


def _await(lake: LocalLake, connector: ConnectorClient, condition: Callable[[], bool]) -> None:
    moved, deadline = _taken(lake), time.monotonic() + READY_TIMEOUT_S
    while not condition():
        for part in stack.components(lake.home):
            if part["name"] == component.NAME:  # started later, when the changelogs exist
                continue
            if part["state"] not in ("running", "starting"):
                raise _component_failed(lake, part["name"], f"{part['name']} is {part['state']}")
        failure = connector.failure()
        if failure is not None:
            raise _component_failed(lake, "connect", f"the connector failed: {failure}")
        if time.monotonic() > deadline:
            # The marker follows the initial snapshot, whose duration depends on the tables' size.
            before, moved = moved, _taken(lake)
            if moved == before:
                message = (
                    f"no marker came through the stream within {READY_TIMEOUT_S:.0f} s,"
                    " nor any other event"
                )
                raise _component_failed(lake, STREAM, message)
            deadline = time.monotonic() + READY_TIMEOUT_S
        time.sleep(_POLL_S)


def _taken(lake: LocalLake) -> dict[str, Mapping[int, int]]:
    """Return the offsets that each table has reached in its topic."""
    return arrived_offsets(lake.kafka, lake.plan, Progress.load(lake.control))


def _component_failed(lake: LocalLake, name: str, message: str) -> ComponentFailed:
    log = lake.home.log(name)
    return ComponentFailed(
        message, f"read its log {log}, then run `cdclake up` again", name, log_tail(log)
    )


def _write_plan(lake: LocalLake) -> None:
    lake.client("s3").put_object(
        Bucket=BUCKET,
        Key=lake.plan_uri.removeprefix(f"s3://{BUCKET}/"),
        Body=lake.plan.to_json().encode(),
    )


def _drop_forgotten_slot(lake: LocalLake) -> None:
    """Drop an unused slot with the pipeline's name: it retains WAL for a lake that is gone."""
    with psycopg.connect(lake.dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
            "WHERE slot_name = %s AND NOT active",
            (lake.plan.source_object,),
        )


def _create_database(server: str, name: str) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        if not _has_database(connection, name):
            connection.execute(
                psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(name))
            )


def _existing_database(server: str, plan: Plan, before: LakeState) -> str:
    """Return the embedded server's database for the pipeline; "" is the server's default database.

    It is the declared database if that exists: `up --no-stream` creates it, so that a later
    pipeline file finds the tables that were created there. A lake that has streamed keeps its own.
    """
    if before.epoch and before.database:
        return before.database
    with psycopg.connect(server, autocommit=True) as connection:
        return plan.source_database if _has_database(connection, plan.source_database) else ""


def _has_database(connection: psycopg.Connection[Any], name: str) -> bool:
    found = connection.execute("SELECT FROM pg_database WHERE datname = %s", (name,))
    return found.fetchone() is not None


def _table(table: Any) -> dict[str, Any]:
    return {
        "table": table.name,
        "source": table.source,
        "changes": table.changes,
        "current": naming.current_name(table.name),
        "history": naming.history_name(table.name),
    }


def _answer(endpoints: Any, source: dict[str, Any], tables: list[Any]) -> dict[str, Any]:
    return {
        "ok": True,
        "source": source,
        "kafka": endpoints.kafka,
        "s3": endpoints.s3,
        "glue": endpoints.glue,
        "connect": endpoints.connect,
        "logs": endpoints.logs,
        "tables": tables,
    }


def down(home: Home, *, purge: bool) -> dict[str, Any]:
    """Stop everything and keep all data; with `purge` remove the lake, never the source's data."""
    state = LakeState.load(home)
    if state.plan and state.external:
        _leave_source(home, state)
    stopped = stack.shut_down(home)
    if purge:
        _purge(home, state)
    return {"ok": True, "stopped": stopped, "purged": purge}


def _leave_source(home: Home, state: LakeState) -> None:
    """Remove cdclake's objects from an external source: an unread slot would retain WAL forever."""
    lake = describe_lake(home, state)
    if stack.is_up(home):
        stack.stop_component(home, STREAM)
        stack.stop_component(home, "connect")
    remove_from_source(lake.dsn, lake.plan)


def _purge(home: Home, state: LakeState) -> None:
    """Remove topics, lake and checkpoints; the embedded database keeps the user's tables."""
    for name in ("kafka", "aws", "firehose", "checkpoints", "spark"):
        shutil.rmtree(home.data(name), ignore_errors=True)
    kept = LakeState(database=state.database)
    kept.save(home)


def pause(home: Home, lake: LocalLake) -> dict[str, Any]:
    """Stop the stream between two commits, and Firehose; changes accumulate in Kafka."""
    stack.stop_component(home, STREAM)
    stack.stop_component(home, component.NAME)
    replace(lake.state, paused=True).save(home)
    return {"ok": True, "tables": [{"table": t.name, "did": "paused"} for t in lake.plan.tables]}
