"""Erasure of rows by the job that applies them: the stream between two batches, or a table job.

The rows leave the changelog, the state, the quarantine and the derived tables, and every snapshot
with them expires. Files stay for queries that have planned them; `forget` deletes them later, by
the time of this outcome. Each step may run again. Firehose may append to the changelog and to the
quarantine meanwhile: a commit that conflicts is tried again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame

from cdclake import naming
from cdclake.control_objects import ForgetRequest, derived_name, erased_name
from cdclake.derived_table import DerivedTable
from cdclake.erasures import ErasedKeys
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.limit_condition import is_withheld
from cdclake.jobs.apply.state_update import StateUpdate
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.derived.file_copy import write_files
from cdclake.jobs.derived.own_table import check_format, is_own
from cdclake.jobs.derived.refresh import write_whole
from cdclake.jobs.derived.source_snapshot import definition_of, open_source
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp, moment_after
from cdclake.jobs.iceberg.commit_retry import retry_on_conflict
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.iceberg.table_handle import TableHandle
from cdclake.jobs.maintenance.complete_removal import (
    keep_current_snapshot,
    metadata_file,
    rewrite_without_deleted,
)
from cdclake.jobs.operations.erased_records import (
    LIMIT,
    RECORD,
    erased_events,
    erased_records,
    erased_state_keys,
)
from cdclake.jobs.operations.replay import note_released
from cdclake.jobs.stream.append import commit_files
from cdclake.jobs.stream.table_stream import TableStream
from cdclake.plan import Plan, Table

Json = dict[str, Any]

# S3 gives the times of objects in seconds, and its servers' clocks may differ a little.
CLOCK_MARGIN_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TableErasure:
    """Erasure of a table's rows; the caller holds the leases of all that is named in `names`."""

    lake: LakeTables
    plan: Plan
    table: Table
    erased: ErasedKeys
    control: ObjectStore
    leases: Leases
    keeps_files: bool = True  # for queries that have planned them; the caller deletes them

    @property
    def names(self) -> list[str]:
        """The tables whose leases are held: state, changelog, quarantine and derived tables."""
        return [self.table.name, *self.others]

    @property
    def others(self) -> list[str]:
        """The tables whose leases are held but for the state.

        A derived table that was not refreshed yet is one: its first refresh may have read the rows.
        """
        derived = (each.name for each in readers_of(self.plan, self.table))
        return [self.table.changes, naming.QUARANTINE, *derived]

    def run(self) -> tuple[Json, int]:
        """Erase the rows; return how many there were, and how many records count as refused.

        Records that a rule withholds do not.
        """
        lake, table = self.lake, self.table
        derived = derived_of(self.plan, table, lake, self.control)
        with ExitStack() as held:
            events = held.enter_context(persisted(erased_events(lake, table, self.erased)))
            found = erased_state_keys(lake, table, events, self.erased)
            keys = held.enter_context(persisted(found))
            refused = erased_records(lake, table, self.plan, self.erased)
            records = held.enter_context(persisted(refused))
            counted = f"NOT {is_withheld('reason')} AND `table` = {SPARK.text(table.name)}"
            refused_records = records.where(counted).count()
            counts = {"events": events.count(), "keys": keys.count(), "records": records.count()}
            if counts["keys"]:  # before the changelog: a run that is repeated finds the keys there
                _delete(lake, table.name, keys, _of_key(table, naming.POSITION, "<", LIMIT))
            if counts["events"]:
                same = _of_key(table, naming.POSITION, "=", naming.POSITION)
                _delete(lake, table.changes, events.distinct(), same)
            if counts["records"]:
                same = " AND ".join(f"t.`{name}` <=> e.`{name}`" for name in RECORD)
                _delete(lake, naming.QUARANTINE, records.distinct(), same)
        before = self._leave_nothing(derived)
        names = [each.name for each in derived]
        return {**counts, "derived": names, "metadata": before}, refused_records

    def _leave_nothing(self, derived: Sequence[DerivedTable]) -> dict[str, str]:
        """Remove the deleted rows from files and snapshots, and write derived tables again.

        Returns by table the last metadata file that has the old snapshots.
        """
        names = (self.table.changes, self.table.name, naming.QUARANTINE)
        for name in names:
            retry_on_conflict(name, partial(rewrite_without_deleted, self.lake, name))
        _renew_stamps(self.lake, self.table)
        before = {name: metadata_file(self.lake, name) for name in names}
        for name in names:
            keep_current_snapshot(self.lake, name, keeps_files=self.keeps_files)
        for each in derived:
            self._write_again(each)
        if self.keeps_files:
            self._note_end()
        return before

    def _note_end(self) -> None:
        """Write the object whose time separates the old files from those of later writers.

        The leases are still held, so no other job has files in flight that are older. The outcome
        is no such object: requests that are repeated may delay it until long after the release.
        """
        time.sleep(CLOCK_MARGIN_S)
        self.control.write(erased_name(self.table.name), {})

    def _write_again(self, derived: DerivedTable) -> None:
        """Replace a derived table by its query's result, which has no erased row."""
        sources = [open_source(self.lake, self.plan.table(name)) for name in derived.sources]
        if derived.format == "iceberg":
            definition = definition_of(self.plan, derived, sources)
            write_whole(self.lake, derived, self.leases, definition)
            keep_current_snapshot(self.lake, derived.name, keeps_files=self.keeps_files)
        else:
            write_files(self.lake, derived, self.leases, keeps_before=self.keeps_files)


def erase_rows(
    request: ForgetRequest, mine: TableProgress, stream: TableStream, control: ObjectStore
) -> Json | None:
    """Erase the rows of all registered keys; None if that is not possible yet.

    It has to wait for a batch that drops the events of the request's keys, and for the leases of
    the tables: another job may have files in flight.
    """
    if stream.erased is None or not request.is_registered(stream.erased.positions):
        return None
    erasure = TableErasure(
        lake=stream.lake,
        plan=stream.plan,
        table=stream.table,
        erased=stream.erased,
        control=control,
        leases=stream.leases,
    )
    with ExitStack() as held:
        if not all(held.enter_context(stream.leases.try_hold(name)) for name in erasure.names):
            return None
        counts, refused = erasure.run()
        stream.load_again()
        stream.read_changelog()
    note_released(mine, stream, refused)
    return counts


def readers_of(plan: Plan, table: Table) -> list[DerivedTable]:
    """Return the derived tables that read the table."""
    return [derived for derived in plan.derived if table.name in derived.sources]


def derived_of(
    plan: Plan, table: Table, lake: LakeTables, control: ObjectStore
) -> list[DerivedTable]:
    """Return the derived tables that were refreshed and read the table; hold their leases.

    Raises TableError for one that is stored in another format than the declared one: it could not
    be written again after the rows are erased.
    """
    readers = readers_of(plan, table)
    found = [derived for derived in readers if _was_refreshed(derived, lake, control)]
    for derived in found:
        check_format(lake, derived)
    return found


def _was_refreshed(derived: DerivedTable, lake: LakeTables, control: ObjectStore) -> bool:
    """Check whether a refresh wrote the table; one that was killed then has noted nothing."""
    is_noted = control.read(derived_name(derived.name)) is not None
    found = [properties for name in derived.stored if (properties := lake.properties(name))]
    is_written = is_noted or bool(found)
    return is_written and all(is_own(properties, is_noted=is_noted) for properties in found)


def _renew_stamps(lake: LakeTables, table: Table) -> None:
    """Commit the stamps of changelog and state again: no older snapshot is needed for them."""
    changelog = TableHandle(lake, table.changes)
    if table.delivery != "firehose":  # whose commits have none
        _renew_stamp(changelog)
    if lake.stamped(table.name).stamp is not None:
        update = StateUpdate(lake, table, changelog=changelog)
        update.commit_stamp(update.applied())


def _renew_stamp(changelog: TableHandle) -> None:
    stamped = changelog.stamped()
    if stamped.stamp is None:
        return
    stamp = ChangesStamp.from_json(stamped.stamp)
    commit_files(
        [],
        changelog,
        read_from=stamped.snapshot_id,
        follows=stamp.ingested_through,
        stamp=replace(stamp, ingested_through=moment_after(stamp)),
    )


def _of_key(table: Table, left: str, comparison: str, right: str) -> str:
    keys = (f"t.{SPARK.name(name)} = e.{SPARK.name(name)}" for name in table.key)
    return " AND ".join([*keys, f"t.{left} {comparison} e.{right}"])


def _delete(lake: LakeTables, name: str, found: DataFrame, condition: str) -> None:
    statement = (
        f"MERGE INTO {lake.qualified(name)} AS t USING {{found}} AS e"
        f" ON {condition} WHEN MATCHED THEN DELETE"
    )
    retry_on_conflict(name, lambda: lake.spark.sql(statement, found=found))
