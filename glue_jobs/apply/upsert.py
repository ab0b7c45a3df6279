"""Application of changes by one row delta: new rows, and deletes of the rows they replace."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame

from cdclake.iceberg import upsert
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.latest_row import Carried, folded_rows
from cdclake.iceberg.merge import floor_of_kept, loaded_rows
from cdclake.iceberg.state_rows import inserted_values
from cdclake.jobs.apply.change_stats import PositionRange
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.iceberg.pruned_scan import PrunedScan
from cdclake.jobs.iceberg.row_delta import RowDelta
from cdclake.jobs.iceberg.views import viewed
from cdclake.plan import Table

MAX_LISTED_KEYS = 200  # Iceberg does not prune files by longer lists
MAX_ROWS_PER_FILE = 100_000  # one task writes one file; maintenance makes larger ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Upsert:
    """Upsert of one set of changes into the state."""

    lake: LakeTables
    table: Table
    changes: str  # a view of them, without truncates
    reach: PositionRange
    floor: str
    carried: Carried  # as for `merge.merge_changes`
    ahead: bool  # every change is newer than whatever is stored

    def stage(self, delta: RowDelta) -> None:
        """Stage the changes in the delta."""
        scan = delta.scan
        if scan is None or not (near := scan.files_with(scan.between(self.reach.bounds))):
            self._add_whole(delta)
            return
        with ExitStack() as held:
            stored = held.enter_context(viewed(held.enter_context(scan.rows_of(near))))
            if self.ahead and not self.reach.lacking and not self._dropped(delta):
                self._stage_whole(delta, stored)
            else:
                self._stage_either(delta, scan, stored)

    def _stage_whole(self, delta: RowDelta, stored: str) -> None:
        """Write whole rows while the rows that they replace are being located."""
        add: Callable[[RowDelta], None] = inheritable_thread_target(self._add_whole)
        taken = upsert.taken_places(self.table, stored, self.changes)
        with ThreadPoolExecutor(1) as executor:
            adding = executor.submit(add, delta)
            delta.delete(self.lake.spark.sql(taken))
            adding.result()

    def _stage_either(self, delta: RowDelta, scan: PrunedScan, stored: str) -> None:
        """Locate the keys' stored rows first: some may have to be combined with the changes."""
        with ExitStack() as held:
            changed = held.enter_context(viewed(self._keys()))
            dropped = self._dropped(delta)
            found = upsert.replaced_places(self.table, stored, changed, dropped, ahead=self.ahead)
            places = held.enter_context(persisted(self.lake.spark.sql(found)))
            mixed = places.where(upsert.MIXED).count()
            if mixed:
                near = scan.files_with(self._having_mixed(scan, places, mixed))
                rows = held.enter_context(scan.rows_of(near))
                self._stage_mixed(delta, rows, places)
                return
            delta.delete(places)
            self._add_whole(delta)

    def _add_whole(self, delta: RowDelta) -> None:
        """Add the changes as whole rows."""
        if self._are_rows():
            self._add(delta, self.lake.spark.sql(loaded_rows(self.table, self.changes)))
            return
        carried = self.carried if self.reach.lacking else ()
        folded = f"({self._folded(carried)})"
        self._add(delta, self.lake.spark.sql(upsert.whole_rows(self.table, folded, carried)))

    def _are_rows(self) -> bool:
        """Return whether each change already is its key's whole row, so nothing is to be folded."""
        plain = self.reach.only_creations and not self.reach.lacking
        if not plain or floor_of_kept(self.table, self.floor):
            return False
        return self._keys().count() == self.reach.events

    def _keys(self) -> DataFrame:
        grouped = upsert.changed_keys(self.table, self.changes, ahead=self.ahead)
        return self.lake.spark.sql(grouped)

    def _stage_mixed(self, delta: RowDelta, stored: DataFrame, places: DataFrame) -> None:
        """Stage rows that combine changes and stored values."""
        sql, table, carried = self.lake.spark.sql, self.table, self.carried
        with ExitStack() as held:
            folded = held.enter_context(persisted(sql(self._folded(carried))))
            before, changes, found = (
                held.enter_context(viewed(rows)) for rows in (stored, folded, places)
            )
            dropped = self._dropped(delta)
            mixing = sql(upsert.mixed_rows(table, before, changes, found, carried, dropped))
            rows = held.enter_context(persisted(mixing))
            gone = rows.select(upsert.FILE, upsert.ROW)
            whole = places.where(f"NOT {upsert.MIXED}").select(upsert.FILE, upsert.ROW)
            delta.delete(whole.unionAll(gone))
            unmixed = sql(upsert.unmixed_rows(table, changes, found, carried))
            written = rows.drop(upsert.FILE, upsert.ROW)
            self._add(delta, written.unionByName(unmixed, allowMissingColumns=True))

    def _add(self, delta: RowDelta, rows: DataFrame) -> None:
        delta.add(rows.coalesce(max(-(-self.reach.events // MAX_ROWS_PER_FILE), 1)))

    def _dropped(self, delta: RowDelta) -> list[str]:
        """List the dropped columns, whose values stay with their rows (decision 12)."""
        declared = inserted_values(self.table, self.carried)
        return [column for column in delta.columns if column not in declared]

    def _folded(self, carried: Carried) -> str:
        floor = floor_of_kept(self.table, self.floor)
        return folded_rows(self.table, self.changes, carried, SPARK, floor)

    def _having_mixed(self, scan: PrunedScan, places: DataFrame, mixed: int) -> Any:
        """Build a condition for the mixed rows; naming few keys skips most files of large rows."""
        [key, *others] = self.table.key
        if others or mixed > MAX_LISTED_KEYS or key not in self.reach.bounds:
            return scan.between(self.reach.bounds)
        listed = places.where(upsert.MIXED).select(SPARK.name(key)).collect()
        return scan.among(key, [row[key] for row in listed])
