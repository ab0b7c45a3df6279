"""Changes that need more than an update of rows, prepared by Spark.

Truncates and sweeps delete all rows below them; a creation of a changed key may lack a value that
an earlier event of the old key has.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame

from cdclake import naming
from cdclake.debezium.position import is_sweep
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.latest_row import history_part
from cdclake.iceberg.merge import above_truncates, delete_truncated
from cdclake.iceberg.views import AppliedThrough
from cdclake.jobs.apply.key_changes import carried_creations, with_origins
from cdclake.jobs.apply.pending_changes import PendingChanges
from cdclake.jobs.apply.pending_facts import PendingFacts
from cdclake.jobs.apply.pending_facts_query import facts_of_rows
from cdclake.jobs.apply.rebuilt_state import Check, accept_all, floor_of, rebuild_state
from cdclake.jobs.apply.state_update import StateUpdate
from cdclake.jobs.iceberg.persistence import persisted


def apply_prepared(update: StateUpdate, pending: PendingChanges) -> int:
    """Apply the changelog's pending rows; return the number of events."""
    lake, table = update.lake, update.table
    low, high = SPARK.instant(pending.after), SPARK.instant(pending.through)
    within = f"{naming.INGESTED_AT} > {low} AND {naming.INGESTED_AT} <= {high}"
    with persisted(lake.read(table.changes).where(within)) as rows:
        facts = facts_of_rows(rows)
        merge_pending(update, rows, facts, update.applied(), AppliedThrough(pending.through))
        return facts.events


def merge_pending(
    update: StateUpdate,
    pending: DataFrame,
    facts: PendingFacts,
    applied: AppliedThrough,
    until: AppliedThrough,
    *,
    check: Check = accept_all,
) -> None:
    """Apply pending rows; afterwards the state is applied and swept up to `until`.

    `check` gets the whole changelog if the state has to be rebuilt. An error that it raises, or a
    crash, leaves the stamp as it was, so that the next call repeats all.
    """
    lake, table = update.lake, update.table
    until = replace(until, rebuilt=applied.rebuilt)
    waiting = _waiting(update, facts, applied)
    if waiting is not None:
        pending = pending.unionByName(waiting.select(*pending.columns))
    if waiting is None and not facts.carried_key_changes:
        _merge_above(update, pending, facts, applied, until, check)
        return
    with with_origins(pending, lake.read(table.changes), table) as completed:
        # A column that lacked a value may be completed again by a late event.
        facts = replace(facts_of_rows(completed), unavailable=facts.unavailable)
        _merge_above(update, completed, facts, applied, until, check)


def _merge_above(
    update: StateUpdate,
    pending: DataFrame,
    facts: PendingFacts,
    applied: AppliedThrough,
    until: AppliedThrough,
    check: Check,
) -> None:
    lake, table = update.lake, update.table
    floor = max(applied.floor, until.floor)
    if facts.truncates:
        floor = floor_of(lake, pending, floor)
    until = replace(until, floor=floor)
    if floor == applied.floor:
        update.merge_rows(pending, facts, applied, until)
        return
    if is_sweep(floor):
        # The snapshot's rows first, so that readers never miss them; then what they replace.
        above = pending.where(above_truncates(table, floor))
        applied = update.merge_rows(above, facts, applied, applied)
    lake.spark.sql(delete_truncated(table, lake.database, floor))
    update.forget()
    if not is_sweep(floor):
        update.merge_rows(pending, facts, applied, until)
        return
    # Only rows that are applied here: later ones may need columns that this plan does not have.
    if _has_replaced_values(update, floor):
        rebuild_state(lake, table, floor=floor, through=until.ingested, check=check)
        update.forget()
    else:
        update.commit_stamp(replace(until, carried=applied.carried, newest=applied.newest))


def _waiting(update: StateUpdate, facts: PendingFacts, applied: AppliedThrough) -> DataFrame | None:
    """Return creations that were applied before events that their values depend on, if any.

    Applying a creation again is harmless, so all that may be waiting are returned.
    """
    lowest = update.waiting_from(facts, applied)
    if lowest is None:
        return None
    log = update.lake.read(update.table.changes)
    earlier = log.where(f"{naming.INGESTED_AT} <= {SPARK.instant(applied.ingested)}")
    waiting = carried_creations(earlier, lowest)
    return None if waiting.isEmpty() else waiting


def _has_replaced_values(update: StateUpdate, floor: str) -> bool:
    """Return whether a kept row has a large value from below the sweep's floor.

    The event with its new value was refused, and a later event of the row did not send it.
    """
    if not update.table.may_be_unsent:
        return False
    is_old = f"value_at <> '' AND {history_part('value_at')} < {SPARK.text(floor)}"
    has_old = f"exists(map_values({naming.VALUE_POSITIONS}), value_at -> {is_old})"
    return not update.lake.read(update.table.name).where(has_old).isEmpty()
