"""Start of streaming: source, topics, connector and stream, until a marker has passed through."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial

from cdclake.activity import step
from cdclake.debezium.connector import SourceAddress, connector_config, queue_bytes
from cdclake.debezium.worker import password_of, salt_of
from cdclake.errors import TableError
from cdclake.fail_points import reach
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.operations.table_operations import streamed_tables
from cdclake.local.awaited_events import (
    READY_TIMEOUT_S,
    await_marker,
    find_unfinished_loads,
)
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
from cdclake.local.lake.declared_connectors import remove_connectors
from cdclake.local.lake.glue_registry import prepare_registry
from cdclake.local.lake.job_schedules import schedule_jobs
from cdclake.local.lake.lake import (
    LakeState,
    LocalLake,
    create_bucket_and_database,
    source_parts,
    write_plan,
)
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
    begin_loads,
)
from cdclake.local.lake.topics import MarkerReader, create_topics
from cdclake.local.operations_backend import local_operations, run_stream
from cdclake.local.process.home import Home
from cdclake.local.puts import put_lifecycle
from cdclake.plan import Plan
from cdclake.plan_diff import PlanDiff
from cdclake.postgres.source import Prepared, renamed_early
from cdclake.postgres.source_names import can_be_read_again
from cdclake.rereading import refuse_rereading


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
        await_marker(lake, connector, markers)
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
    running = find_unfinished_loads(lake) if lake.state.loads else {}
    kept = {name: load for name, load in lake.state.loads.items() if name in running}
    begun = () if lake.plan.snapshot_mode == "bulk" and not change.by_signal else change.read_now
    state = replace(lake.state, loads=kept | begin_loads(lake, begun))
    _save_but_the_plan(lake.home, state)
    return state


def _read_rewritten_again(lake: LocalLake) -> None:
    """Resync tables that were rewritten while the connector took its first snapshot."""
    checked = settle_relations(lake)
    for table in lake.plan.tables:
        if any(c.resync and c.kind == "rewritten" for c in checked.changes[table.source]):
            local_operations(lake).resync(table, wait=False)


def _read_outdated_again(lake: LocalLake) -> None:
    """Resync tables with values that are older than changes that they missed (decision 8).

    With refused events each resync may fail: `status` names the commands to run first.
    """
    progress = Progress.load(lake.control)
    for table in streamed_tables(lake.plan):
        place = progress.table(table.name)
        if place.missed_below is None or place.quarantined:
            continue
        if place.is_streaming and can_be_read_again(table):
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


def _drop_forgotten_slot(lake: LocalLake) -> None:
    """Drop an unused slot of this lake's: it retains WAL for a history that is gone."""
    if lake.state.external:
        check_owner_in(lake.dsn, lake.plan, owner_of(lake.home, lake.state))
    drop_unread_slot(lake.dsn, lake.plan)
