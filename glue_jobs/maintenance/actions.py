"""The actions of `maintain_tables`, one function and one row of `ACTIONS` each.

A derived table is maintained by the same actions, by the job that refreshes it.

A state is maintained under its lease, so never while the stream merges into it: a MERGE always
loses against a concurrent rewrite. On a changelog, appends and rewrites do not conflict; its lease
only keeps the stream from expiring the snapshot that a rewrite started from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cdclake import naming
from cdclake.iceberg.collapse import TOMBSTONE_HORIZON
from cdclake.iceberg.conversions import to_state
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.views import BEFORE_ALL
from cdclake.jobs.iceberg.commit_metadata import state_stamp
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.jvm.java import each
from cdclake.jobs.maintenance.changelog_compaction import Collapse
from cdclake.jobs.maintenance.delete_compaction import compact_deletes, drop_dangling_deletes
from cdclake.jobs.maintenance.snapshot_expiration import remove_old_snapshots, time_of
from cdclake.plan import Table

# Must exceed the longest write: a file that is not committed yet looks like an orphan.
ORPHAN_AGE = timedelta(days=3)
MIN_SMALL_FILES = 5
# A file of this size is not compacted again, so a run rewrites at most this much of what an earlier
# run has compacted. Opening such a file costs little compared with reading it.
LARGE_FILE_BYTES = 16 << 20
# Exceeds the age of the stamp that a query of Athena's `<t>_current` takes, and its run time.
MAX_VIEW_STAMP_AGE = timedelta(hours=1)
# A file with at least this share of deleted rows is rewritten without them. Below it, readers skip
# the deleted rows, which costs little more than reading them.
MAX_DELETED_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class MaintainedTable:
    """Iceberg table that an action works on, such as the state or the changelog of a table."""

    lake: LakeTables
    table: Table | None  # the source table; None for a derived one and the quarantine
    name: str  # of the Iceberg table
    now: datetime
    history: timedelta | None = None  # of a changelog: how long it keeps every event
    readers: timedelta = timedelta(0)  # how long readers of its snapshots may be behind
    lateness: timedelta = timedelta(0)  # of rows that Firehose commits to the changelog

    @property
    def is_changelog(self) -> bool:
        """Check whether it is the changelog, which no job deletes rows from."""
        return self.table is not None and self.name == self.table.changes

    def call(self, procedure: str, **arguments: str) -> None:
        """Call an Iceberg procedure on the table."""
        given = ", ".join(f"{key} => {value}" for key, value in arguments.items())
        target = SPARK.text(f"{self.lake.database}.{self.name}")
        self.lake.spark.sql(f"CALL {naming.CATALOG}.system.{procedure}(table => {target}, {given})")


def purge_tombstones(upkeep: MaintainedTable) -> None:
    """Remove tombstones older than any event that may still arrive; keep soft deletes.

    Their age counts from the ingestion of the delete: what it deleted is in Kafka as long, however
    old its commit is. The changelog has that time. Athena's `<t>_current` overlays the state with
    events that Firehose may have committed late, also applied ones: those outlive their tombstone.
    """
    if upkeep.table is None or upkeep.is_changelog or upkeep.table.deletes == "soft":
        return
    lake, before = upkeep.lake, _timestamp(upkeep.now - TOMBSTONE_HORIZON)
    condition = f"{naming.DELETED} AND {naming.COMMITTED_AT} < {before}"
    if lake.read(upkeep.name).where(condition).isEmpty():
        return
    young = (
        f"SELECT 1 FROM {lake.qualified(upkeep.table.changes)} AS event"
        f" WHERE event.{naming.OP} = 'd' AND event.{naming.INGESTED_AT} >= {before}"
        f" AND event.{naming.POSITION} = stored.{naming.POSITION}"
    )
    if upkeep.lateness:
        condition += f" AND NOT EXISTS ({_overlaid_events(upkeep, upkeep.table)})"
    lake.spark.sql(
        f"DELETE FROM {lake.qualified(upkeep.name)} AS stored"
        f" WHERE {condition} AND NOT EXISTS ({young})"
    )


def _overlaid_events(upkeep: MaintainedTable, table: Table) -> str:
    """Return a SELECT of the events before a tombstone `stored` that `<t>_current` may overlay.

    The view takes a stamp that is minutes old, so the newest one that is an hour old is a safe
    bound. Without such a stamp every event counts.
    """
    lake, stamp = upkeep.lake, f"summary['{naming.STAMP_PROPERTY}']"
    before = _timestamp(upkeep.now - MAX_VIEW_STAMP_AGE)
    [[newest]] = lake.spark.sql(
        f"SELECT max_by({stamp}, committed_at) FROM {lake.qualified(upkeep.name)}.snapshots"
        f" WHERE {stamp} IS NOT NULL AND committed_at <= {before} AND snapshot_id IN"
        f" (SELECT snapshot_id FROM {lake.qualified(upkeep.name)}.history"
        " WHERE is_current_ancestor)"
    ).collect()
    late = upkeep.lateness // timedelta(microseconds=1)
    since = state_stamp(newest).ingested - late if newest else BEFORE_ALL
    keys = (
        f"{to_state(f'event.{SPARK.name(key.name)}', key.column_type, SPARK)}"
        f" = stored.{SPARK.name(key.name)}"
        for key in table.key_columns
    )
    return (
        f"SELECT 1 FROM {lake.qualified(table.changes)} AS event"
        f" WHERE event.{naming.INGESTED_AT} > {SPARK.instant(since)}"
        f" AND event.{naming.OP} NOT IN ('d', 't')"
        f" AND event.{naming.POSITION} < stored.{naming.POSITION} AND {' AND '.join(keys)}"
    )


def collapse_history(upkeep: MaintainedTable) -> None:
    """Collapse the changelog's old events to the newest of each key."""
    if upkeep.table is None or not upkeep.is_changelog:
        return
    assert upkeep.history is not None
    Collapse(
        lake=upkeep.lake,
        table=upkeep.table,
        before=(upkeep.now - upkeep.history).date(),
        tombstones_since=upkeep.now - TOMBSTONE_HORIZON,
    ).run()


def compact_files(upkeep: MaintainedTable) -> None:
    """Compact small files, and rewrite files with too many deleted rows.

    The work is proportional to the changes, not to the size of the table.
    """
    options = {
        "delete-ratio-threshold": str(MAX_DELETED_SHARE),
        "min-file-size-bytes": str(LARGE_FILE_BYTES),
        "min-input-files": str(MIN_SMALL_FILES),
    }
    if not upkeep.is_changelog:
        options["remove-dangling-deletes"] = "true"
        if upkeep.table is not None and upkeep.table.sort_by:
            by = ", ".join(SPARK.name(column) for column in upkeep.table.sort_by)
            order = {"strategy": "'sort'", "sort_order": SPARK.text(by)}
            upkeep.call("rewrite_data_files", options=_options(options), **order)
            return
    upkeep.call("rewrite_data_files", options=_options(options))


def sort_deletes(upkeep: MaintainedTable) -> None:
    """Write one delete file per data file, so that compaction opens only that one.

    These files also give compaction the number of deleted rows of each data file.
    """
    compact_deletes(upkeep.lake, upkeep.name, MIN_SMALL_FILES)


def compact(upkeep: MaintainedTable) -> None:
    """Compact the files that recent batches have written."""
    sort_deletes(upkeep)
    compact_files(upkeep)
    drop_dangling_deletes(upkeep.lake, upkeep.name)


def expire_snapshots(upkeep: MaintainedTable) -> None:
    """Expire old snapshots: keep one per hour, and none older than some days."""
    readers = upkeep.readers if upkeep.is_changelog else timedelta(0)
    remove_old_snapshots(upkeep.lake, upkeep.name, upkeep.now, readers)


def remove_orphans(upkeep: MaintainedTable) -> None:
    """Remove files that no snapshot references and that are too old to be in flight."""
    before = upkeep.now - ORPHAN_AGE
    oldest = next(each(upkeep.lake.load(upkeep.name).snapshots()), None)  # by age, with tagged ones
    if oldest is None or time_of(oldest.timestampMillis()) >= before:
        return  # the table is younger than the limit
    # List through the catalog's S3FileIO; otherwise Hadoop would need a file system for s3.
    upkeep.call("remove_orphan_files", older_than=_timestamp(before), prefix_listing="true")


ACTIONS: Mapping[str, Callable[[MaintainedTable], None]] = {
    "purge": purge_tombstones,
    "collapse": collapse_history,
    "pack": compact,
    "expire": expire_snapshots,
    "orphans": remove_orphans,
}


def _timestamp(at: datetime) -> str:
    return f"TIMESTAMP '{at.astimezone(UTC).isoformat(sep=' ', timespec='milliseconds')}'"


def _options(options: Mapping[str, str]) -> str:
    inside = ", ".join(f"{SPARK.text(k)}, {SPARK.text(v)}" for k, v in options.items())
    return f"map({inside})"
