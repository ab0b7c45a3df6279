"""Application of a changelog that Firehose writes; rows arrive in any order and more than once.

Progress is tracked by the changelog's commits, not by time of ingestion. Rows that were applied
before may be read again; this is harmless, since the merge keeps the greater position.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from cdclake import naming
from cdclake.debezium.position import history_part
from cdclake.firehose.arrival import DELIVERY_S
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.views import AppliedThrough
from cdclake.jobs.apply.changelog_commits import commits_since, passed_at, reached
from cdclake.jobs.apply.pending_facts_query import facts_of_rows
from cdclake.jobs.apply.prepared_changes import merge_pending
from cdclake.jobs.apply.rebuilt_state import Check, accept_all, applied_through
from cdclake.jobs.apply.state_update import StateUpdate
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.iceberg.commit_retry import retry_on_conflict
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.plan import Plan, Table


def apply_log(lake: LakeTables, table: Table, *, floor: str, check: Check = accept_all) -> int:
    """Apply rows committed since the state's stamp; return the number of rows read.

    Rows below `floor` have been replaced by a complete snapshot, and are deleted. Retries
    if its commit conflicts with another writer's. An error that `check` raises ends it, and the
    next call reads the same rows.
    """
    return retry_on_conflict(table.name, lambda: _apply_log(lake, table, floor, check))


def delivered_floor(
    lake: LakeTables, control: ObjectStore, plan: Plan, table: Table, delivery_s: float
) -> str:
    """Return the position below which a delivered snapshot has replaced the table's rows.

    Firehose appends a row, or gives it up, within `delivery_s` after its function decoded it.
    """
    shared = [other for other in plan.tables if other.topic == table.topic]
    progress = Progress.load(control)
    return swept_below(lake, progress, table, shared, time.time(), delivery_s)


def swept_below(
    lake: LakeTables,
    progress: Progress,
    table: Table,
    same_topic: Sequence[Table],
    now: float,
    delivery_s: float,
) -> str:
    """Return the floor that a complete snapshot gives the table; "" until its rows have arrived.

    They have when the changelogs of `same_topic`, which all tables of its Kafka topic share, have
    an event at the end that the topic had, or after it, that was ingested `delivery_s` ago: earlier
    ones have been appended since, or have failed. Such an event alone shows nothing, since each
    table of a domain is appended by itself, with retries. Events of an epoch whose topic may have
    been lost do not count, and a record that Firehose cannot deliver never arrives: `DELIVERY_S`
    is enough too.
    """
    place = progress.table(table.name)
    if not progress.complete_snapshot:
        return ""
    floor = history_part(progress.complete_snapshot)
    if applied_through(lake, table).floor >= floor or now > progress.completed_at + DELIVERY_S:
        return floor
    ends = {partition: end for partition, end in place.snapshot_ends.items() if end}
    passed = passed_at(lake, same_topic, progress.first_epoch(table.topic), ends)
    has_all = all(p in passed and passed[p] + delivery_s < now for p in ends)
    return floor if has_all else ""


def _apply_log(lake: LakeTables, table: Table, floor: str, check: Check) -> int:
    applied = applied_through(lake, table)
    commits = commits_since(lake, table, applied.sequence)
    if commits.after is None and (floor <= applied.floor or not applied.sequence):
        if 0 < applied.sequence < commits.sequence:
            # `verify` reads the changelog's snapshot of the stamp, which expires.
            StateUpdate(lake, table).commit_stamp(replace(applied, sequence=commits.sequence))
        return 0
    after = applied.ingested if commits.after is None else commits.after
    log = lake.read(table.changes)
    is_late = f"{naming.INGESTED_AT} > {SPARK.instant(after)}"
    with persisted(log.where(is_late)) as pending:
        check(pending)
        facts = facts_of_rows(pending)
        until = _not_before(applied, reached(pending, commits.sequence, floor))
        merge_pending(StateUpdate(lake, table), pending, facts, applied, until, check=check)
        return facts.events


def _not_before(applied: AppliedThrough, until: AppliedThrough) -> AppliedThrough:
    """Keep the time of ingestion from going back: a commit may contain only older rows."""
    return replace(until, ingested=max(applied.ingested, until.ingested))
