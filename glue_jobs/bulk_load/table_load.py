"""Bulk load of one table: append its rows, quarantine refused ones, then fill the state."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.position import history_part
from cdclake.errors import TableError
from cdclake.iceberg.merge import loaded_rows, rebuilt_rows
from cdclake.iceberg.schemas import changes_schema
from cdclake.iceberg.views import AppliedThrough
from cdclake.jobs.apply.state_table import apply_changes
from cdclake.jobs.apply.state_update import StateUpdate
from cdclake.jobs.bulk_load.exported_snapshot import ExportedSnapshot
from cdclake.jobs.bulk_load.loaded_rows import RECORD, last_loaded, loaded_events
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp, moment_after, state_stamp_json
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.table_handle import TableHandle
from cdclake.jobs.iceberg.views import viewed
from cdclake.jobs.stream.append import LOAD_PARTITION, append_changes, epoch_sweep, sweep_row
from cdclake.jobs.stream.changelog_columns import REFUSAL
from cdclake.jobs.stream.quarantine import quarantine_rows
from cdclake.plan import Plan, Table

log = logging.getLogger("cdclake.load")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """Result of a table's load."""

    rows: int
    refused: int
    withheld: int  # of the refused ones, those that a rule withholds

    @property
    def faults(self) -> int:
        """Return the number of refused rows that no rule withholds."""
        return self.refused - self.withheld


@dataclass(frozen=True, slots=True)
class TableLoad:
    """Load of one table in a new epoch; the stream must not run meanwhile.

    Never repeat a load in the same epoch: after a failure it restarts in the next epoch, whose
    sweep deletes the rows of the failed one.
    """

    lake: LakeTables
    plan: Plan
    table: Table
    snapshot: ExportedSnapshot
    epoch: int

    def run(self) -> Loaded:
        """Load the table; raise TableError unless every source row was loaded or quarantined."""
        stamped = self.lake.stamped(self.table.changes)
        before = ChangesStamp.from_json(stamped.stamp) if stamped.stamp else ChangesStamp()
        ingested_at = moment_after(before)
        stamp = ChangesStamp(offsets=before.offsets, ingested_through=ingested_at, epoch=self.epoch)
        is_first = stamped.snapshot_id is None
        events = loaded_events(self.snapshot, self.table, self.plan, epoch=self.epoch)
        rows = self._rows_to_append(events, ingested_at, with_sweep=not is_first)
        append_changes(
            rows,
            TableHandle(self.lake, self.table.changes),
            read_from=stamped.snapshot_id,
            follows=before.ingested_through,
            stamp=stamp,
        )
        self.snapshot.check()
        loaded = self._account(events)
        self._update_state(ingested_at, is_first=is_first)
        log.info("%s: %s at LSN %x", self.table.name, loaded, self.snapshot.lsn)
        return loaded

    def _rows_to_append(
        self, events: DataFrame, ingested_at: int, *, with_sweep: bool
    ) -> DataFrame:
        """Return all accepted rows; one commit appends them, so a load is complete or absent."""
        rows = events.where(F.col(REFUSAL).isNull())
        if with_sweep:
            rows = rows.unionByName(sweep_row(rows, epoch_sweep(self.epoch), ingested_at))
        moment = F.timestamp_micros(F.lit(ingested_at))
        columns = [name for name, _ in changes_schema(self.table, self.plan).columns]
        return rows.withColumn(naming.INGESTED_AT, moment).select(*(f"`{n}`" for n in columns))

    def _account(self, events: DataFrame) -> Loaded:
        """Check that every source row is in the changelog, after quarantining refused ones.

        Refused rows are read only if there are any.
        """
        expected, accepted = self.snapshot.count(self.table), self._in_log().count()
        refused, withheld = 0, 0
        if accepted < expected:
            refused, withheld = quarantine_rows(events, RECORD, self.lake, self.table)
        if accepted + refused != expected:
            raise TableError(
                self.table.name,
                f"the source had {expected} rows, but {accepted} were loaded and {refused} refused",
                "start the load again (locally `cdclake up`); if this persists, use"
                " `snapshot: {mode: initial}`",
            )
        return Loaded(rows=accepted, refused=refused, withheld=withheld)

    def _in_log(self) -> DataFrame:
        """Read the rows of this load from the changelog."""
        is_mine = (F.col(naming.PARTITION) == LOAD_PARTITION) & (F.col(naming.EPOCH) == self.epoch)
        return self.lake.read(self.table.changes).where(is_mine)

    def _update_state(self, ingested_at: int, *, is_first: bool) -> None:
        """Write the rows to an empty state; otherwise apply them and the sweep."""
        if self.lake.stamped(self.table.name).snapshot_id is not None:
            apply_changes(StateUpdate(self.lake, self.table), through=ingested_at)
            return
        carried = self.table.toastable if self.table.deletes == "soft" else ()
        is_plain = not carried and self.snapshot.has_unique_keys(self.table)
        floor = "" if is_first else history_part(epoch_sweep(self.epoch))
        newest = str(last_loaded(self.snapshot, self.epoch))
        stamp = state_stamp_json(AppliedThrough(ingested_at, floor, carried, newest))
        with viewed(self._in_log()) as view:
            statement = (
                loaded_rows(self.table, view)
                if is_plain
                else rebuilt_rows(self.table, view, carried)
            )
            writer = self.lake.spark.sql(statement).writeTo(self.lake.qualified(self.table.name))
            writer.option(f"snapshot-property.{naming.STAMP_PROPERTY}", stamp).append()
