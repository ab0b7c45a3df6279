"""Start of streaming: source, topics, connector and stream, until a marker has passed through."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from cdclake.activity import Advance, Sampler, Step, step
from cdclake.debezium.connector import SourceAddress, connector_config, queue_bytes
from cdclake.debezium.worker import password_of, salt_of
from cdclake.errors import ComponentFailed, TableError
from cdclake.fail_points import reach
from cdclake.iceberg.schemas import all_schemas
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.iceberg.catalog_entries import table_entries
from cdclake.jobs.operations.table_operations import streamed_tables
from cdclake.jobs.runtime.source import write_marker
from cdclake.local.bulk_load import end_epoch, load_and_hand_over
from cdclake.local.components import connect
from cdclake.local.firehose import component
from cdclake.local.joining_tables import (
    join_tables,
    refuse_without_sweep,
    request_snapshots,
)
from cdclake.local.lake import stack
from cdclake.local.lake.connector import ConnectorClient
from cdclake.local.lake.connector_failures import remedy_for
from cdclake.local.lake.declared_connectors import remove_connectors
from cdclake.local.lake.delivered_offsets import arrived_offsets
from cdclake.local.lake.glue_registry import prepare_registry
from cdclake.local.lake.job_schedules import schedule_jobs
from cdclake.local.lake.lake import (
    LakeState,
    LocalLake,
    create_bucket_and_database,
    source_parts,
    write_plan,
)
from cdclake.local.lake.load_advance import advance_of
from cdclake.local.lake.no_answer import answer_or_unknown
from cdclake.local.lake.source import (
    check_owner_in,
    drop_unread_slot,
    prepare_source,
    server_of,
)
from cdclake.local.lake.source_credentials import keep_login, keep_salt
from cdclake.local.lake.source_owner import owner_of
from cdclake.local.lake.source_relations import (
    CheckedRelations,
    keep_what_is_read,
    mark_missed_changes,
    settle_relations,
)
from cdclake.local.lake.source_tls import driver_tls
from cdclake.local.lake.spark_jobs import STREAM
from cdclake.local.lake.table_loads import (
    LoadingTable,
    begin_loads,
    tables_replacing,
    unfinished_loads,
)
from cdclake.local.lake.topics import Heartbeat, MarkerReader, create_topics
from cdclake.local.operations_backend import local_operations, run_stream
from cdclake.local.process.home import Home
from cdclake.local.process.supervisor_client import log_tail
from cdclake.local.puts import put_lifecycle
from cdclake.plan import Plan
from cdclake.plan_diff import PlanDiff
from cdclake.postgres.source import Prepared, renamed_early
from cdclake.postgres.source_names import can_be_read_again, rereading_remedy
from cdclake.rereading import refuse_rereading

READY_TIMEOUT_S = 300.0  # for a cold JVM on a busy machine; an idle one takes a tenth
_POLL_S = 0.5
_SHOWN_EVERY_S = 2.0


def start_streaming(
    lake: LocalLake, change: PlanDiff, checked: CheckedRelations, *, lost_offsets: bool
) -> LakeState:
    """Start streaming: prepare the source, start connector and stream, and await a marker."""
    plan, state = lake.plan, lake.state
    running = stack.wants(lake.home, STREAM)
    if change.is_first and not running:
        _drop_forgotten_slot(lake)
    server = server_of(lake.dsn, plan)
    is_lost = bool(server.slot_loss) or state.loading or lost_offsets
    if is_lost or not server.slot_exists:
        change = change.all_snapshotted()
    refuse_without_sweep(lake, change)
    _refuse_rereading(lake, change, checked)
    mark_missed_changes(lake, checked)
    prepared = _prepare_source(lake, change)
    state = replace(state, left_source=False)
    lake = replace(lake, state=state)
    change = change.adapted(prepared.renamed, checked.to_resync)
    connector = ConnectorClient(lake.endpoints.connect, plan)
    if not change.by_signal:
        state = replace(_begin_epoch(lake, connector, is_lost=is_lost), loads={})
    _save_but_the_plan(lake.home, state)
    lake = replace(lake, state=state)
    create_topics(lake.kafka, plan)
    create_bucket_and_database(lake)
    put_lifecycle.prepare(lake)
    lake = replace(lake, state=state.publishing())
    join_tables(lake, change, write_plan=partial(_publish_plan, lake))
    state = _flow(lake, connector, change, checked, _note_loads(lake, change))
    schedule_jobs(lake)
    if lost_offsets and not state.paused:
        local_operations(lake).accept_new_topics(streamed_tables(plan))
    return state


def _refuse_rereading(lake: LocalLake, change: PlanDiff, checked: CheckedRelations) -> None:
    """Refuse what the file needs to be read and cannot be, but not what the source has changed."""
    stored = LakeState.load(lake.home).plan  # of before, until this `up` ends
    renamed = renamed_early(change.renamed, checked.source.tables)
    refuse_rereading(Plan.from_json(stored) if stored else None, change.adapted(renamed, ()))


def _publish_plan(lake: LocalLake) -> None:
    """Publish the plan to the jobs, and note that first: `up` may die before the plan is stored."""
    _save_but_the_plan(lake.home, lake.state)
    write_plan(lake)
    reach("after_plan")


def _prepare_source(lake: LocalLake, change: PlanDiff) -> Prepared:
    with step("prepare the source"):
        return prepare_source(
            lake.dsn,
            lake.plan,
            embedded=not lake.state.external,
            owner=owner_of(lake.home, lake.state),
            role_password=lake.home.secret("replication_password"),
            kept=frozenset(table.source for table in change.kept),
        )


def _flow(
    lake: LocalLake,
    connector: ConnectorClient,
    change: PlanDiff,
    checked: CheckedRelations,
    state: LakeState,
) -> LakeState:
    """Start connector and stream, and await a marker; leave a paused stream alone."""
    markers = MarkerReader(lake.kafka, lake.plan)
    try:
        if not change.by_signal:
            keep_what_is_read(lake, checked, first=True)
        with step("start the connector"):
            _start_connector(lake, connector, change)
        if change.by_signal:
            keep_what_is_read(lake, checked, first=False)
        # Until it is saved below, the stored plan still has the connectors that left the file.
        remove_connectors(lake, Plan.from_json(LakeState.load(lake.home).plan))
        state = replace(state, loading=False, published=[])
        state.save(lake.home)
        if state.paused:
            return state
        run_stream(lake, READY_TIMEOUT_S)
        _await_marker(lake, connector, markers)
    finally:
        markers.close()
    component.run(lake)
    _read_rewritten_again(lake)
    _read_outdated_again(lake)
    return state


def _begin_epoch(lake: LocalLake, connector: ConnectorClient, *, is_lost: bool) -> LakeState:
    """Begin an epoch: a full snapshot, whose rows must take precedence over everything before."""
    if is_lost:
        # Before the offsets are deleted: if they are the reason, the next `up` needs them after a
        # failure of this one.
        connector.stop_existing()
        stack.stop_component(lake.home, STREAM)  # it may still wait for topics that are gone
        end_epoch(lake)
    connector.forget_offsets()
    is_bulk = lake.plan.snapshot_mode == "bulk"
    before = LakeState.load(lake.home)  # the plan of before: it may have polled these tables
    return replace(lake.state, epoch=before.newest_epoch + 1, loading=is_bulk)


def _note_loads(lake: LocalLake, change: PlanDiff) -> LakeState:
    """Return the state with the snapshots that begin now, and without those that have ended."""
    running = unfinished(lake) if lake.state.loads else {}
    kept = {name: load for name, load in lake.state.loads.items() if name in running}
    begun = () if lake.plan.snapshot_mode == "bulk" and not change.by_signal else change.read_now
    state = replace(lake.state, loads=kept | begin_loads(lake, begun))
    _save_but_the_plan(lake.home, state)
    return state


def await_rows(lake: LocalLake) -> None:
    """Wait until the snapshot of every table is in the lake."""

    def all_loaded(shown: Step) -> bool:
        loads = unfinished(lake)
        if (advance := advance_of(loads)) is not None:
            shown.note(advance)
        for name, load in loads.items():
            if load.refused is not None:
                read = rereading_remedy(lake.plan.table(name))
                raise ComponentFailed(load.refused, read, "connect")
        return not loads

    connector = ConnectorClient(lake.endpoints.connect, lake.plan)
    with step("read the tables") as shown:
        _await(
            lake,
            connector,
            partial(all_loaded, shown),
            "the rows of a snapshot did not reach the lake",
        )


def unfinished(lake: LocalLake) -> dict[str, LoadingTable]:
    """Return the tables whose snapshot is not in the lake yet."""
    progress = Progress.load(lake.control)
    arrived = arrived_offsets(lake.kafka, lake.plan, progress)
    return unfinished_loads(lake, arrived, tables_replacing(lake, progress))


def _read_rewritten_again(lake: LocalLake) -> None:
    """Resync tables that were rewritten while the connector took its first snapshot."""
    checked = settle_relations(lake)
    for table in lake.plan.tables:
        if any(c.resync and c.kind == "rewritten" for c in checked.changes[table.source]):
            local_operations(lake).resync(table, wait=False)


def _read_outdated_again(lake: LocalLake) -> None:
    """Resync tables with values that are older than changes that they missed (decision 8)."""
    progress = Progress.load(lake.control)
    for table in streamed_tables(lake.plan):
        place = progress.table(table.name)
        if place.missed_below is not None and place.is_streaming and can_be_read_again(table):
            with suppress(TableError):  # it is being read; the next `up` asks again
                local_operations(lake).resync(table, wait=False)


def _save_but_the_plan(home: Home, state: LakeState) -> None:
    """Save the state with the old plan: if `up` dies now, the next one requests snapshots again."""
    replace(state, plan=LakeState.load(home).plan or state.plan).save(home)


def _start_connector(lake: LocalLake, connector: ConnectorClient, change: PlanDiff) -> None:
    """Run the connector with the plan's tables, after the bulk load if the epoch has one."""
    address = _source_address(lake)
    salt = salt_of(keep_salt(lake.plan, lake.mask_salt))
    registry = prepare_registry(lake.plan, lake.endpoints)
    config = connector_config(
        lake.plan,
        address,
        epoch=lake.state.epoch,
        mask_salt=salt,
        max_queue_bytes=queue_bytes(connect.HEAP_MB * 1024**2),
        registry=registry,
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
        request_snapshots(lake, change)
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
        **driver_tls(lake.dsn),
    )


def _await_marker(lake: LocalLake, connector: ConnectorClient, markers: MarkerReader) -> None:
    """Wait until a marker written to the source has passed through the whole pipeline."""
    marker = os.urandom(8).hex()
    write_marker(lake.dsn, marker)
    beat: Heartbeat | None = None

    def came_through() -> bool:
        nonlocal beat
        if beat is None:
            beat = markers.find(marker)
        if beat is None:
            return False
        return beat.has_passed(Progress.load(lake.control)) and _all_objects_exist(lake)

    def looked_at() -> Advance:
        waits_for = "the connector sends a marker row" if beat is None else "the stream commits it"
        loads = advance_of(answer_or_unknown(partial(unfinished, lake), {}))
        if loads is None:
            return Advance(now=waits_for)
        return replace(loads, now=f"{waits_for}, after the rows: {loads.now}")

    with step("wait for a change of the source to come through") as shown:
        sampler = Sampler(shown, looked_at, _SHOWN_EVERY_S)

        def looked() -> bool:
            sampler.sample()
            return came_through()

        _await(lake, connector, looked, "no marker came through the stream")


def _all_objects_exist(lake: LocalLake) -> bool:
    entries = table_entries(lake.client("glue"), lake.plan.lake_database)
    return {schema.name for schema in all_schemas(lake.plan)} <= entries.keys()


def _await(
    lake: LocalLake, connector: ConnectorClient, condition: Callable[[], bool], missing: str
) -> None:
    """Wait for the condition; raise ComponentFailed, `missing` first, after a time without events.

    Both conditions follow snapshots, whose duration depends on the tables' size.
    """
    moved, deadline = _taken(lake), time.monotonic() + READY_TIMEOUT_S
    while not condition():
        for part in stack.components(lake.home):
            if part["name"] == component.NAME:  # started later, when the changelogs exist
                continue
            if part["state"] not in ("running", "starting"):
                raise _component_failed(lake, part["name"], f"{part['name']} is {part['state']}")
        failure = connector.failure()
        if failure is not None:
            raise _component_failed(lake, "connect", f"the connector failed: {failure}", failure)
        if time.monotonic() > deadline:
            before, moved = moved, _taken(lake)
            if moved == before:
                message = f"{missing}: no event arrived for {READY_TIMEOUT_S:.0f} s"
                raise _component_failed(lake, STREAM, message)
            deadline = time.monotonic() + READY_TIMEOUT_S
        time.sleep(_POLL_S)


def _taken(lake: LocalLake) -> dict[str, Mapping[int, int]]:
    """Return the offsets that each table has reached in its topic."""
    return arrived_offsets(lake.kafka, lake.plan, Progress.load(lake.control))


def _component_failed(
    lake: LocalLake, name: str, message: str, connector_failure: str = ""
) -> ComponentFailed:
    log = lake.home.log(name)
    remedy = remedy_for(connector_failure, lake.plan.source_object)
    remedy = remedy or f"read its log {log}, then run `cdclake up` again"
    return ComponentFailed(message, remedy, name, log_tail(log))


def _drop_forgotten_slot(lake: LocalLake) -> None:
    """Drop an unused slot of this lake's: it retains WAL for a history that is gone."""
    if lake.state.external:
        check_owner_in(lake.dsn, lake.plan, owner_of(lake.home, lake.state))
    drop_unread_slot(lake.dsn, lake.plan)
