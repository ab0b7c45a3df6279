"""Start of a lake: `up` with and without a pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from cdclake.config.resolve import load_plan
from cdclake.debezium.avro_converter import plugin_profile
from cdclake.local import unstreamed
from cdclake.local.awaited_events import await_rows
from cdclake.local.components.connect_plugins import declare_plugins
from cdclake.local.firehose import component
from cdclake.local.lake import connector_offsets, stack
from cdclake.local.lake.client_files import write_client_files
from cdclake.local.lake.declared_columns import declare_new_columns
from cdclake.local.lake.declared_connectors import ConnectorState, apply_connectors, shown
from cdclake.local.lake.embedded_database import create_database, existing_database
from cdclake.local.lake.job_schedules import end_earlier_runs
from cdclake.local.lake.lake import (
    LakeState,
    LocalLake,
    describe_lake,
    shown_source,
    source_parts,
)
from cdclake.local.lake.source import (
    check_owner_in,
    check_source,
    identity_of,
    warnings_of,
)
from cdclake.local.lake.source_owner import owner_of
from cdclake.local.lake.source_relations import CheckedRelations, check_relations
from cdclake.local.lake.stack import Endpoints
from cdclake.local.lake.widened_columns import follow_source
from cdclake.local.lake_continuation import compare_plans, continued
from cdclake.local.operations_backend import local_operations
from cdclake.local.polls import poll_new_tables
from cdclake.local.process.home import Home
from cdclake.local.puts import put_lifecycle
from cdclake.local.puts.abandoned_records import refuse_to_abandon, refuse_to_leave
from cdclake.local.shutdown import stop_streaming
from cdclake.local.streaming_start import start_streaming
from cdclake.local.table_answer import table_answer
from cdclake.local.table_changes import table_changes
from cdclake.plan import Plan, Table
from cdclake.plan_diff import PlanDiff
from cdclake.plan_effects import rebuild_advice
from cdclake.postgres.refusal import as_warnings

STARTED, ROWS = "started", "rows"  # what `up` may wait for


def up_bare(home: Home, plan: Plan | None, dsn: str | None) -> dict[str, Any]:
    """Start everything except connector and stream, and return the answer of `up`.

    Those of an earlier `up` are stopped.
    """
    state = LakeState.load(home)
    endpoints = _bring_up(home, dsn, None)
    stop_streaming(home, endpoints, state)
    database = state.database
    if plan is not None and plan.all_tables and endpoints.source is not None and not state.epoch:
        database = plan.source_database
        create_database(endpoints.source.dsn(), database)
    state = replace(state, external=dsn is not None, database=database, bare=True)
    state.save(home)
    source = asdict(endpoints.source) if endpoints.source else source_parts(str(dsn))
    if endpoints.source is not None and database:
        source["dbname"] = database
    return _answer(home, endpoints, shown_source(source, dsn), [])


def up(
    home: Home, plan: Plan, pipeline_file: str, dsn: str | None, *, wait: str = STARTED
) -> dict[str, Any]:
    """Start or repair the lake with `plan`, and return when a marker has passed through it.

    With `wait=ROWS`, return when every table's snapshot is in the lake. A lake without streamed
    tables is ready when its polled tables were read. A paused lake stays paused, without waiting.
    """
    if not plan.tables:
        return unstreamed.up(home, plan, pipeline_file, dsn)
    component.requested_faults()
    before = LakeState.load(home)
    refuse_to_leave(home, before, plan)
    plan, known = continued(before, plan, pipeline_file)
    change = compare_plans(before, plan)
    declare_plugins(home, plan.connectors)
    endpoints = _bring_up(home, dsn, plan, plugin_profile(plan.registry))
    state = replace(
        known, external=dsn is not None, plan=plan.to_json(), pipeline_file=pipeline_file,
        database=existing_database(endpoints, plan, before), bare=False,
        source_id="" if dsn is None else identity_of(dsn),
    )  # fmt: skip
    if declared := _declare(describe_lake(home, state), pipeline_file, change):
        plan = replace(load_plan(Path(pipeline_file)), connectors=plan.connectors)
        return _told(up(home, plan, pipeline_file, dsn, wait=wait), declared)
    topic = connector_offsets.offsets_topic(home, endpoints, embedded_postgres=dsn is None)
    lost = connector_offsets.are_lost(endpoints.kafka, state, topic)
    lake = _following(describe_lake(home, replace(state, connector_offsets=topic)), change)
    set_back = connector_offsets.are_ahead(lake)
    checked = _check_relations(lake, change)
    state = start_streaming(lake, change, checked, lost_offsets=lost or set_back)
    lake = replace(lake, state=state)
    connectors = _complete(lake, wait)
    return {
        **_answer(home, endpoints, shown_source(source_parts(lake.dsn), dsn), lake.plan.all_tables),
        **_outcome(before, lake, change, checked, set_back=set_back),
        **poll_new_tables(lake, Plan.from_json(before.plan) if before.plan else None),
        "connectors": shown(connectors),
        **(_firehose(endpoints, plan) if plan.streams else {}),
    }


def _following(lake: LocalLake, change: PlanDiff) -> LocalLake:
    """Return the lake with the types that its source has widened.

    Raises an error if a joining table is still being read.
    """
    lake = lake if change.is_first else follow_source(lake)
    local_operations(lake).refuse_if_being_read(() if change.is_first else change.joining)
    return lake


def _complete(lake: LocalLake, wait: str) -> list[ConnectorState]:
    """Apply the declared connectors, keep the state, and await the rows if that is asked for."""
    connectors = apply_connectors(lake)
    lake.state.save(lake.home)
    if wait == ROWS and not lake.state.paused:
        await_rows(lake)
    return connectors


def _outcome(
    before: LakeState,
    lake: LocalLake,
    change: PlanDiff,
    checked: CheckedRelations,
    *,
    set_back: bool,
) -> dict[str, Any]:
    return {
        "did": [
            *([connector_offsets.SET_BACK] if set_back else []),
            *_did(before, lake.state, change),
        ],
        "changed": table_changes(lake, before, change),
        "paused": lake.state.paused,
        "relation_changes": checked.to_json(),
        "warnings": [
            *as_warnings(warnings_of(lake.dsn, lake.plan, embedded=not lake.state.external)),
            *_rebuild_warnings(before, lake, change),
        ],
    }


def _rebuild_warnings(
    before: LakeState, lake: LocalLake, change: PlanDiff
) -> Iterator[dict[str, str]]:
    stored = None if change.is_first or not before.plan else Plan.from_json(before.plan)
    advice = {} if stored is None else rebuild_advice(stored, lake.plan, change)
    for table, remedy in advice.items():
        yield {"message": f"{table}: earlier values of a widened column are NULL", "remedy": remedy}


def _declare(
    lake: LocalLake, pipeline_file: str, change: PlanDiff
) -> Mapping[str, Mapping[str, str]]:
    """Write new columns into the file if its policy is `declare`; return them by source table."""
    if lake.plan.new_columns != "declare":
        return {}
    file = Path(pipeline_file)
    return declare_new_columns(lake.dsn, lake.plan, file, is_first=change.is_first).added


def _told(answer: dict[str, Any], declared: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    told = [f"{table}: declared {', '.join(columns)}" for table, columns in declared.items()]
    return {**answer, "did": [*told, *answer["did"]], "declared_columns": dict(declared)}


def _bring_up(
    home: Home, dsn: str | None, plan: Plan | None, converter: str | None = None
) -> Endpoints:
    """Start the servers, after the source has answered and can stream the plan."""
    if dsn is not None:
        _check_source(home, dsn, plan)
    endpoints = stack.bring_up(home, embedded_postgres=dsn is None, converter=converter)
    if plan is not None:
        refuse_to_abandon(home, LakeState.load(home), plan)
    end_earlier_runs(home)
    write_client_files(home, endpoints)
    if dsn is not None:
        home.remember("source_dsn", dsn)
    return endpoints


def _check_source(home: Home, dsn: str, plan: Plan | None) -> None:
    """Raise InputError if the source does not answer or cannot stream the plan.

    The tables of a streaming lake are checked later, when what is dead has been healed.
    """
    state = LakeState.load(home)
    owner = owner_of(home, state)
    if plan is not None and state.epoch:
        check_owner_in(dsn, plan, owner)
    else:
        check_source(dsn, plan, owner)


def _check_relations(lake: LocalLake, change: PlanDiff) -> CheckedRelations:
    being_read = local_operations(lake).backend.tables_being_read()
    return replace(check_relations(lake, change.kept), being_read=being_read)


def _did(before: LakeState, after: LakeState, change: PlanDiff) -> list[str]:
    """Describe what `up` changed apart from processes."""
    did = [f"epoch {after.epoch} began"] if after.epoch != before.epoch else []
    if not change.is_first:
        did += [f"{table.name} joined" for table in change.joining]
        did += [f"{table.name} left" for table in change.leaving]
        did += [f"{table.name} has other columns" for table in change.reshaped]
    if not did and after.plan != before.plan:
        did.append("the pipeline file's settings changed")
    return did


def _firehose(endpoints: Endpoints, plan: Plan) -> dict[str, Any]:
    return {"firehose": endpoints.firehose, **put_lifecycle.described(plan)}


def _answer(
    home: Home, endpoints: Endpoints, source: dict[str, Any], tables: Sequence[Table]
) -> dict[str, Any]:
    return {
        "ok": True,
        "source": source,
        "kafka": endpoints.kafka.address,
        "s3": endpoints.s3,
        "glue": endpoints.glue,
        "connect": endpoints.connect.url,
        "clients": str(home.clients),
        "logs": endpoints.logs,
        "tables": [table_answer(table) for table in tables],
    }
