"""Application of changes: one guarded merge of the changelog rows that the state lacks.

It is idempotent: the merge keeps the greater position, the truncate floor drops truncated rows, and
the stamp records how far (by time of ingestion) the changelog is applied.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.position import is_sweep
from cdclake.fail_points import reach
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.latest_row import floor_of_log, history_part
from cdclake.iceberg.merge import (
    above_truncates,
    delete_truncated,
    merge_changes,
    rebuilt_rows,
)
from cdclake.iceberg.views import AppliedThrough
from cdclake.jobs.apply.change_stats import ChangeStats, PositionRange, range_of, stats_of
from cdclake.jobs.apply.changelog_commits import committed_sequence, reached
from cdclake.jobs.apply.key_changes import carried_creations, with_origins
from cdclake.jobs.apply.upsert import Upsert
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp, state_stamp, state_stamp_json
from cdclake.jobs.iceberg.commit_retry import retry_on_conflict
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.iceberg.row_delta import RowDelta
from cdclake.jobs.iceberg.views import viewed
from cdclake.plan import Table

# Above it use MERGE: a delta broadcasts its keys to every task and its places to the driver.
MAX_DELTA_EVENTS = 1_000_000


def applied_through(lake: LakeTables, table: Table) -> AppliedThrough:
    """Read how far the state is applied from its newest stamp."""
    stamp = lake.stamped(table.name).stamp
    return state_stamp(stamp) if stamp else AppliedThrough()


def ingested_through(lake: LakeTables, table: Table) -> int:
    """Read the changelog's newest time of ingestion from its newest stamp."""
    stamp = lake.stamped(table.changes).stamp
    return ChangesStamp.from_json(stamp).ingested_through if stamp else 0


def apply_changes(lake: LakeTables, table: Table, *, through: int) -> int:
    """Apply rows ingested up to `through` that the state lacks; return the number of events.

    Retries if its commit conflicts with another writer's or ends with an unknown outcome, which the
    state's stamp resolves. Raises CommitConflict if that persists.
    """
    reach("before_state_commit")
    applied = retry_on_conflict(table.name, lambda: _apply(lake, table, through))
    reach("after_state_commit")
    return applied


def _apply(lake: LakeTables, table: Table, through: int) -> int:
    applied = applied_through(lake, table)
    if applied.ingested >= through:
        return 0
    until = AppliedThrough(through)
    with persisted(_ingested(lake, table, after=applied.ingested, through=through)) as pending:
        facts = stats_of(table, pending)
        merge_pending(lake, table, pending, facts, applied, until)
        return facts.events


def rebuild_state(lake: LakeTables, table: Table, *, floor: str = "") -> int:
    """Rebuild the state from its changelog in one commit; return the number of rows.

    Only the values of dropped columns come from the existing rows. `floor` is a sweep's that may
    not be in the changelog.
    """
    log, until = _whole_log(lake, table, floor)
    with ExitStack() as held:
        changes = held.enter_context(persisted(log))
        facts = stats_of(table, changes)
        carried = _carried(table, {*facts.unavailable})
        if facts.carried_key_changes:
            whole = lake.read(table.changes)
            changes = held.enter_context(with_origins(changes, whole, table))
        floor = _floor(lake, table, changes, until.floor)
        kept = changes.where(above_truncates(table, floor))
        with viewed(kept) as view:
            rows = lake.spark.sql(rebuilt_rows(table, view, carried, floor))
            reach = _known_reach(facts, floor) or range_of(table, kept)
            done = replace(until, floor=floor, carried=carried, newest=reach.highest)
            stamp = state_stamp_json(done)
            writer = _with_dropped(lake, table, rows).writeTo(lake.qualified(table.name))
            writer = writer.option(f"snapshot-property.{naming.STAMP_PROPERTY}", stamp)
            writer.overwrite(F.lit(True))
    return lake.read(table.name).count()


def _with_dropped(lake: LakeTables, table: Table, rows: DataFrame) -> DataFrame:
    """Add the state's values of dropped columns to the rows.

    The changelog does not have them: in it a NULL from before the drop and an event from after it
    look the same.
    """
    stored = lake.read(table.name)
    dropped = [column for column in stored.columns if column not in rows.columns]
    if not dropped:
        return rows
    newest = (F.max_by(column, naming.POSITION).alias(column) for column in dropped)
    held = stored.groupBy(*table.key).agg(*newest)  # a state that is rebuilt may have duplicates
    return rows.join(held, [*table.key], "left").select(*stored.columns)


def merge_pending(
    lake: LakeTables,
    table: Table,
    pending: DataFrame,
    facts: ChangeStats,
    applied: AppliedThrough,
    until: AppliedThrough,
) -> None:
    """Apply pending changes; afterwards the state is applied and swept up to `until`."""
    pending, has_waiting = _with_waiting(lake, table, pending, facts, applied)
    with ExitStack() as held:
        if facts.carried_key_changes or has_waiting:
            origins = with_origins(pending, lake.read(table.changes), table)
            pending, facts = held.enter_context(origins), replace(facts, reach=None)
        floor = max(applied.floor, until.floor)
        if facts.truncates:
            floor = _floor(lake, table, pending, floor)
        if floor == applied.floor:
            _merge(lake, table, pending, facts, applied, replace(until, floor=floor))
            return
        if is_sweep(floor):
            # The snapshot's rows first, so that readers never miss them; then what they replace.
            pending = pending.where(above_truncates(table, floor))
            applied = _merge(lake, table, pending, facts, applied, applied)
            pending = pending.limit(0)
        lake.spark.sql(delete_truncated(table, lake.database, floor))
        _merge(lake, table, pending, facts, applied, replace(until, floor=floor))
    if is_sweep(floor) and _has_replaced_values(lake, table, floor):
        rebuild_state(lake, table, floor=floor)


def _merge(
    lake: LakeTables,
    table: Table,
    pending: DataFrame,
    facts: ChangeStats,
    applied: AppliedThrough,
    until: AppliedThrough,
) -> AppliedThrough:
    """Merge the pending changes above the floor of `until` in one commit; return its stamp."""
    with viewed(pending.where(above_truncates(table, until.floor))) as changes:
        reach = _known_reach(facts, until.floor) or range_of(table, lake.spark.table(changes))
        carried = _carried(table, {*applied.carried, *facts.unavailable})
        done = replace(until, carried=carried, newest=max(applied.newest, reach.highest))
        delta = RowDelta(lake, table.name)
        if not delta.is_possible or reach.events > MAX_DELTA_EVENTS:
            statement = merge_changes(table, lake.database, changes, carried, until.floor)
            lake.run_stamped(state_stamp_json(done), lambda: _run(lake, statement))
            return done
        if reach.events:
            Upsert(
                lake=lake,
                table=table,
                changes=changes,
                reach=reach,
                floor=until.floor,
                carried=carried,
                ahead=reach.lowest > applied.newest,
            ).stage(delta)
        delta.commit(state_stamp_json(done))
        return done


def _has_replaced_values(lake: LakeTables, table: Table, floor: str) -> bool:
    """Return whether a kept row has a large value from below the sweep's floor.

    The event with its new value was refused, and a later event of the row did not send it.
    """
    if not table.may_be_unsent:
        return False
    is_old = f"value_at <> '' AND {history_part('value_at')} < {SPARK.text(floor)}"
    has_old = f"exists(map_values({naming.VALUE_POSITIONS}), value_at -> {is_old})"
    return not lake.read(table.name).where(has_old).isEmpty()


def _known_reach(facts: ChangeStats, floor: str) -> PositionRange | None:
    """Return the range from `facts`, if it is known and the floor excludes nothing."""
    reach = None if facts.truncates else facts.reach
    return reach if reach is not None and reach.lowest >= floor else None


def _with_waiting(
    lake: LakeTables, table: Table, pending: DataFrame, facts: ChangeStats, applied: AppliedThrough
) -> tuple[DataFrame, bool]:
    """Add creations that were applied before events that their values depend on.

    The two keys of a change may be in different partitions, and one may lag. An earlier value may
    come from quarantine. Applying a creation again is harmless, so all that may be waiting are
    added. The flag is True if there are any.
    """
    if not set(applied.carried) & {*table.may_be_unsent}:
        return pending, False
    lowest = facts.lowest_deleted_lsn
    if facts.reach is not None and facts.reach.lowest <= applied.newest:
        lowest = pending.agg(F.min(naming.LSN)).collect()[0][0]
    if lowest is None:
        return pending, False
    log = _ingested(lake, table, after=-1, through=applied.ingested)
    waiting = carried_creations(log, lowest).select(*pending.columns)
    if waiting.isEmpty():
        return pending, False
    return pending.unionByName(waiting), True


def _carried(table: Table, unavailable: set[str]) -> tuple[str, ...]:
    """Select the TOAST columns that were ever unavailable; with soft deletes all of them."""
    if table.deletes == "soft":
        return table.toastable
    return tuple(column for column in table.toastable if column in unavailable)


def _run(lake: LakeTables, statement: str) -> None:
    lake.spark.sql(statement)


def _ingested(lake: LakeTables, table: Table, *, after: int, through: int) -> DataFrame:
    low, high = SPARK.instant(after), SPARK.instant(through)
    rows = lake.read(table.changes)
    return rows.where(f"{naming.INGESTED_AT} > {low} AND {naming.INGESTED_AT} <= {high}")


def _whole_log(lake: LakeTables, table: Table, floor: str) -> tuple[DataFrame, AppliedThrough]:
    """Read every row of the changelog, and the progress of a state that holds them."""
    if table.delivery == "stream":
        through = ingested_through(lake, table)
        return _ingested(lake, table, after=-1, through=through), AppliedThrough(through, floor)
    sequence = committed_sequence(lake, table)  # read before the rows: there may be more of them
    log = lake.read(table.changes)
    # A changelog that Firehose writes has no sweeps.
    known = max(floor, applied_through(lake, table).floor)
    return log, reached(log, sequence, known)


def _floor(lake: LakeTables, table: Table, changes: DataFrame, known: str) -> str:
    """Return the greatest truncate position of the changes and `known`."""
    with viewed(changes) as view:
        return str(lake.spark.sql(floor_of_log(view, known, SPARK)).collect()[0]["floor"])
