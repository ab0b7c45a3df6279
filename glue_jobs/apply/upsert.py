"""Changes into `<t>` by one row delta: new rows, and deletes of the places that they take."""

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

MAX_LISTED_KEYS = 200  # among more keys than that Iceberg looks for none in a file's statistics
MAX_ROWS_PER_FILE = 100_000  # each file is one task's work; maintenance makes larger ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Upsert:
    """Changes on their way into the state."""

    lake: LakeTables
    table: Table
    changes: str  # a view of them, without truncates
    reach: PositionRange
    floor: str
    carried: Carried  # as for `merge.merge_changes`
    ahead: bool  # every change is newer than whatever is stored

    def stage(self, delta: RowDelta) -> None:
        """Have the delta make of the state what the changes say."""
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
        """What is stored of the keys only has to go: rows are written while it is looked for."""
        add: Callable[[RowDelta], None] = inheritable_thread_target(self._add_whole)
        taken = upsert.taken_places(self.table, stored, self.changes)
        with ThreadPoolExecutor(1) as beside:
            adding = beside.submit(add, delta)
            delta.delete(self.lake.spark.sql(taken))
            adding.result()

    def _stage_either(self, delta: RowDelta, scan: PrunedScan, stored: str) -> None:
        """Some rows may be made of both, which only a look at those of the keys can tell."""
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
        """The changes make whole rows."""
        if self._are_rows():
            self._add(delta, self.lake.spark.sql(loaded_rows(self.table, self.changes)))
            return
        carried = self.carried if self.reach.lacking else ()
        folded = f"({self._folded(carried)})"
        self._add(delta, self.lake.spark.sql(upsert.whole_rows(self.table, folded, carried)))

    def _are_rows(self) -> bool:
        """Whether each change is its key's row as it is: there is nothing to fold."""
        plain = self.reach.only_creations and not self.reach.lacking
        if not plain or floor_of_kept(self.table, self.floor):
            return False
        return self._keys().count() == self.reach.events

    def _keys(self) -> DataFrame:
        grouped = upsert.changed_keys(self.table, self.changes, ahead=self.ahead)
        return self.lake.spark.sql(grouped)

    def _stage_mixed(self, delta: RowDelta, stored: DataFrame, places: DataFrame) -> None:
        """Some rows are made of the changes and of what is stored."""
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
        """Columns that have left the file, whose values stay with their rows (decision 12)."""
        declared = inserted_values(self.table, self.carried)
        return [column for column in delta.columns if column not in declared]

    def _folded(self, carried: Carried) -> str:
        floor = floor_of_kept(self.table, self.floor)
        return folded_rows(self.table, self.changes, carried, SPARK, floor)

    def _having_mixed(self, scan: PrunedScan, places: DataFrame, mixed: int) -> Any:
        """A condition for the mixed rows. Few are named: that spares most files of large rows."""
        [key, *others] = self.table.key
        if others or mixed > MAX_LISTED_KEYS or key not in self.reach.bounds:
            return scan.between(self.reach.bounds)
        listed = places.where(upsert.MIXED).select(SPARK.name(key)).collect()
        return scan.among(key, [row[key] for row in listed])
