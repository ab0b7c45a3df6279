"""Bulk load of one table: append its rows, quarantine refused ones, then fill the state."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.position import history_part
from cdclake.errors import TableError
from cdclake.iceberg.merge import loaded_rows, rebuilt_rows
from cdclake.iceberg.views import AppliedThrough
from cdclake.jobs.apply.state_table import apply_changes
from cdclake.jobs.apply.state_update import StateUpdate
from cdclake.jobs.bulk_load.exported_snapshot import ExportedSnapshot
from cdclake.jobs.bulk_load.load_files import LoadFiles, LoadTargets, write_decoded
from cdclake.jobs.bulk_load.load_task import LoadTask, load_chunks
from cdclake.jobs.bulk_load.loaded_rows import RECORD, ReadPlace, last_loaded
from cdclake.jobs.bulk_load.unproved_rows import UnprovedRows
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp, moment_after, state_stamp_json
from cdclake.jobs.iceberg.data_file import Delta, rows_of
from cdclake.jobs.iceberg.delta_handle import DeltaHandle
from cdclake.jobs.iceberg.file_target import FileTarget
from cdclake.jobs.iceberg.lake_tables import LakeTables, overwrite
from cdclake.jobs.iceberg.table_handle import TableHandle
from cdclake.jobs.iceberg.views import viewed
from cdclake.jobs.stream.append import (
    LOAD_PARTITION,
    commit_files,
    epoch_sweep,
    fenced,
    next_stamp,
    sweep_row,
)
from cdclake.jobs.stream.changelog_columns import REFUSAL, event_columns
from cdclake.jobs.stream.quarantine import quarantine_rows
from cdclake.jobs.stream.row_files import write_rows
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


class _Read(NamedTuple):
    """All rows that were read."""

    files: LoadFiles  # with the accepted rows
    unproved: DataFrame | None  # the refused rows are among them; None: no row is refused


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
        changelog = TableHandle(self.lake, self.table.changes)
        stamped = changelog.stamped()
        before = ChangesStamp.from_json(stamped.stamp) if stamped.stamp else ChangesStamp()
        ingested_at = moment_after(before)
        stamp = next_stamp(before, [], epoch=self.epoch, ingested_at=ingested_at)
        is_first = stamped.snapshot_id is None
        state = DeltaHandle(self.lake, self.table.name)
        targets = LoadTargets(
            changelog=changelog.target(), state=self._one_pass(state), ingested_at=ingested_at
        )
        read = self._read(targets)
        commit_files(
            read.files.changelog + ([] if is_first else self._sweep(targets)),
            changelog,
            read_from=stamped.snapshot_id,
            follows=before.ingested_through,
            stamp=stamp,
        )
        self.snapshot.check()
        loaded = self._account(read)
        self._update_state(state, read.files, targets, is_first=is_first)
        log.info("%s: %s at LSN %x", self.table.name, loaded, self.snapshot.lsn)
        return loaded

    def _one_pass(self, state: DeltaHandle) -> FileTarget | None:
        """Return the state's target if its rows are those that are read; else None.

        The files of a partitioned state need rows in the order of its partitions: a task would
        write one for each partition that a chunk has rows of.
        """
        if state.stamped().snapshot_id is not None or not self._has_plain_rows():
            return None
        target = state.target()
        return None if target.partition_by else target

    def _has_plain_rows(self) -> bool:
        """Return whether each row is a row of the state, with no value older than the row."""
        return not self._carried and self.snapshot.has_unique_keys(self.table)

    @property
    def _carried(self) -> tuple[str, ...]:
        return self.table.toastable if self.table.deletes == "soft" else ()

    @property
    def _place(self) -> ReadPlace:
        return ReadPlace(epoch=self.epoch, lsn=self.snapshot.lsn, read_at=self.snapshot.read_at)

    def _read(self, targets: LoadTargets) -> _Read:
        """Write files with all accepted rows; a commit adds them all, or a load is absent."""
        chunks = self.snapshot.chunks(self.table)
        task = LoadTask(
            reader=self.snapshot.reader,
            table=self.table,
            place=self._place,
            targets=targets,
        )
        found, files, unproved = load_chunks(self.lake.spark, chunks, task), LoadFiles(), None
        for chunk in found:
            files.add(chunk.files)
        again = [chunk.number for chunk in found if chunk.unproved]
        if again:
            unproved = self._unproved(chunks, again)
            accepted = unproved.where(F.col(REFUSAL).isNull()).select(*event_columns(self.table))
            files.add(write_decoded(accepted, self.table, targets))
        return _Read(files, unproved)

    def _unproved(self, chunks: Sequence[str], again: Sequence[int]) -> DataFrame:
        rows = UnprovedRows(
            reader=self.snapshot.reader, table=self.table, plan=self.plan, place=self._place
        )
        # The numbers follow those of all chunks, since the rows have new offsets.
        numbered = {len(chunks) + number: chunks[number] for number in again}
        return rows.events(self.lake.spark, numbered)

    def _sweep(self, targets: LoadTargets) -> list[str]:
        none = self.lake.read(self.table.changes).limit(0).drop(naming.INGESTED_AT)
        swept = sweep_row(none, epoch_sweep(self.epoch), targets.ingested_at)
        moment = F.timestamp_micros(F.lit(targets.ingested_at))
        return write_rows(swept.withColumn(naming.INGESTED_AT, moment), targets.changelog)

    def _account(self, read: _Read) -> Loaded:
        """Check that every source row is in the changelog, after quarantining refused ones."""
        expected = self.snapshot.count(self.table)
        accepted = sum(map(rows_of, read.files.changelog))
        refused, withheld = 0, 0
        if read.unproved is not None:
            refused, withheld = quarantine_rows(read.unproved, RECORD, self.lake, self.table)
        if accepted + refused != expected:
            raise TableError(
                self.table.name,
                f"the source had {expected} rows, but {accepted} were loaded and {refused} refused",
                "start the load again (locally `cdclake up`); if this persists, use"
                " `snapshot: {mode: initial}`",
            )
        return Loaded(rows=accepted, refused=refused, withheld=withheld)

    def _update_state(
        self, state: DeltaHandle, files: LoadFiles, targets: LoadTargets, *, is_first: bool
    ) -> None:
        """Add the rows to an empty state; otherwise apply them and the sweep."""
        if state.stamped().snapshot_id is not None:
            apply_changes(StateUpdate(self.lake, self.table), through=targets.ingested_at)
            return
        floor = "" if is_first else history_part(epoch_sweep(self.epoch))
        newest = str(last_loaded(self._place))
        stamp = state_stamp_json(AppliedThrough(targets.ingested_at, floor, self._carried, newest))
        if targets.state is None:
            self._fill_state(stamp)
            return
        with fenced(self.table.name):
            state.commit_delta(Delta(data_files=files.state), read_from=None, stamp=stamp)

    def _fill_state(self, stamp: str) -> None:
        """Write an empty state from the changelog, by Spark."""
        is_mine = (F.col(naming.PARTITION) == LOAD_PARTITION) & (F.col(naming.EPOCH) == self.epoch)
        with viewed(self.lake.read(self.table.changes).where(is_mine)) as view:
            statement = (
                loaded_rows(self.table, view)
                if self._has_plain_rows()
                else rebuilt_rows(self.table, view, self._carried)
            )
            writer = self.lake.spark.sql(statement).writeTo(self.lake.qualified(self.table.name))
            writer = writer.option(f"snapshot-property.{naming.STAMP_PROPERTY}", stamp)
            with fenced(self.table.name):  # an append would not be refused
                overwrite(writer, F.lit(True), read_from=None)
