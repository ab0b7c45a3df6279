"""The actions of `maintain_tables`, one function and one row of `ACTIONS` each.

The state is maintained under the table's lease, so never while the stream merges into it: a MERGE
always loses against a concurrent rewrite (correctness 3.2). Of the log appends and rewrites do not
conflict; its lease only keeps the stream from thinning the snapshots that a rewrite began with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cdclake import naming
from cdclake.iceberg.collapse import TOMBSTONE_HORIZON
from cdclake.iceberg.dialect import SPARK
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.jvm.java import each
from cdclake.jobs.maintenance.changelog_compaction import Collapse
from cdclake.jobs.maintenance.delete_compaction import compact_deletes
from cdclake.jobs.maintenance.snapshot_expiration import remove_old_snapshots, time_of
from cdclake.plan import Table

# Never below the longest write: a file in flight looks like an orphan.
ORPHAN_AGE = timedelta(days=3)
MIN_SMALL_FILES = 5
# Bytes: a file of this size is never packed with others again, so a run writes at most so much
# again of what an earlier one has packed. To open it costs little beside reading it.
LARGE_FILE_BYTES = 16 << 20
# Of a file's rows: from so many deleted ones on it is written again without them. Until then its
# readers skip them, which costs little more than reading them would.
MAX_DELETED_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class MaintainedTable:
    """What an action works on: one Iceberg table of one source table."""

    lake: LakeTables
    table: Table
    name: str  # of the Iceberg table: the state or the log
    now: datetime
    history: timedelta  # how long the log keeps every event

    def call(self, procedure: str, **arguments: str) -> None:
        """CALL one of Iceberg's procedures on the table."""
        given = ", ".join(f"{key} => {value}" for key, value in arguments.items())
        target = SPARK.text(f"{self.lake.database}.{self.name}")
        self.lake.spark.sql(f"CALL {naming.CATALOG}.system.{procedure}(table => {target}, {given})")


def purge_tombstones(upkeep: MaintainedTable) -> None:
    """Remove tombstones that no event can revive any more; soft deletes stay for good."""
    if upkeep.name != upkeep.table.name or upkeep.table.deletes == "soft":
        return
    before = _timestamp(upkeep.now - TOMBSTONE_HORIZON)
    condition = f"{naming.DELETED} AND {naming.COMMITTED_AT} < {before}"
    rows = upkeep.lake.read(upkeep.name).where(condition)
    if not rows.isEmpty():
        upkeep.lake.spark.sql(f"DELETE FROM {upkeep.lake.qualified(upkeep.name)} WHERE {condition}")


def collapse_history(upkeep: MaintainedTable) -> None:
    """Keep of the log's old events what the newest of each key needs."""
    if upkeep.name != upkeep.table.changes:
        return
    Collapse(
        lake=upkeep.lake,
        table=upkeep.table,
        before=(upkeep.now - upkeep.history).date(),
        tombstones_since=upkeep.now - TOMBSTONE_HORIZON,
    ).run()


def compact_files(upkeep: MaintainedTable) -> None:
    """Pack small files, and write those again that have lost too many of their rows.

    So what it writes grows with what has changed, not with the table.
    """
    options = {
        "delete-ratio-threshold": str(MAX_DELETED_SHARE),
        "min-file-size-bytes": str(LARGE_FILE_BYTES),
        "min-input-files": str(MIN_SMALL_FILES),
    }
    if upkeep.name == upkeep.table.name:  # no job deletes from a log: it need not be searched
        options["remove-dangling-deletes"] = "true"
    upkeep.call("rewrite_data_files", options=_options(options))


def sort_deletes(upkeep: MaintainedTable) -> None:
    """Before packing: one file of deletes for each data file, which packing then opens alone.

    By those, too, packing knows how much of a file is deleted.
    """
    compact_deletes(upkeep.lake, upkeep.name, MIN_SMALL_FILES)


def compact(upkeep: MaintainedTable) -> None:
    """What the batches of some minutes have left behind, in few files."""
    sort_deletes(upkeep)
    compact_files(upkeep)


def expire_snapshots(upkeep: MaintainedTable) -> None:
    """Of old snapshots leave one for each hour, and none of before some days."""
    remove_old_snapshots(upkeep.lake, upkeep.name, upkeep.now)


def remove_orphans(upkeep: MaintainedTable) -> None:
    """Remove files that no snapshot knows and that are too old to be in flight."""
    before = upkeep.now - ORPHAN_AGE
    oldest = next(each(upkeep.lake.load(upkeep.name).snapshots()), None)  # by age, tagged ones too
    if oldest is None or time_of(oldest.timestampMillis()) >= before:
        return  # a table so young holds nothing so old
    # Listed through the catalog's own S3FileIO; else Hadoop would need a file system for s3.
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
