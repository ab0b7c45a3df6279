"""Collapse of changelog events older than `history_days` to the newest of each key.

The newest event gets the values that PostgreSQL did not send with it; deletes stay while they can
matter. One commit replaces whole days, which writers of new events never touch. A property of the
changelog holds the day before which events may be missing; it is set before the commit, as a reader
relies on it. Collapsing is idempotent.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.position import history_part
from cdclake.iceberg.collapse import collapsed_rows, held_flag
from cdclake.iceberg.conversions import to_state
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.merge import above_truncates
from cdclake.jobs.apply.key_changes import is_carried_creation, with_origins
from cdclake.jobs.apply.rebuilt_state import applied_through
from cdclake.jobs.iceberg.events_of_keys import compared_keys, matching_keys
from cdclake.jobs.iceberg.lake_tables import LakeTables, overwrite
from cdclake.jobs.iceberg.views import viewed
from cdclake.plan import Table

_EVENT = (naming.EPOCH, naming.LSN, naming.TX_ID)  # both events of a changed key have these


@dataclass(frozen=True, slots=True, kw_only=True)
class Collapse:
    """Collapse of one changelog up to a day."""

    lake: LakeTables
    table: Table
    before: date
    tombstones_since: datetime

    def run(self) -> None:
        """Collapse the days before `before` that the state holds, if there are enough new rows.

        A run rewrites all collapsed rows, so it waits until the days since then hold half as many,
        and writes nothing if none of their events replaces or deletes another: the work stays
        proportional to the changes.
        """
        before = min(self.before, self._applied_before())
        collapsed, added = self._rows(before)
        if added == 0 or 2 * added < collapsed:
            return
        read_from = self.lake.stamped(self.table.changes).snapshot_id
        log = self.lake.read(self.table.changes, read_from)
        old = log.where(f"{naming.INGESTED_AT} < {_day(before)}")
        # In a changelog of Firehose's, the note of a collapse also says which commits it covers.
        if self.table.delivery != "firehose" and not self._can_collapse(old):
            self._set(naming.COLLAPSE_COMPLETE, before)
            return
        truncates = old.where(F.col(naming.OP) == "t")
        newest = truncates.agg(F.max(naming.POSITION)).collect()[0][0]
        last = truncates.where(F.col(naming.POSITION) == newest).limit(1)
        floor = history_part(newest) if newest else ""
        alive = old.where(above_truncates(self.table, floor))
        with with_origins(alive, log, self.table) as completed:
            rows = self._collapsed(alive, completed, _straddling(log, before))
            self._announce(before)
            self._replace(rows.unionByName(last), before, read_from)
        self._set(naming.COLLAPSE_COMPLETE, before)

    def _replace(self, rows: DataFrame, before: date, read_from: int | None) -> None:
        """Replace the old days in one commit, which fails if another writer changed them."""
        writer = rows.writeTo(self.lake.qualified(self.table.changes))
        # By day: else each task would write a file of each of hundreds of days. By default Iceberg
        # keeps a file open for each, a MB of memory; without, Spark sorts a task's rows by day.
        writer = writer.option("distribution-mode", "hash").option("fanout-enabled", "false")
        is_old = F.expr(f"{naming.INGESTED_AT} < {_day(before)}")
        overwrite(writer, is_old, read_from=read_from)

    def _announce(self, before: date) -> None:
        """Note what may be missing for a reader that lags: it reads the whole table instead."""
        self._set(naming.COLLAPSED_BEFORE, before)
        if self.table.delivery != "firehose":
            return
        log = self.lake.load(self.table.changes)
        known = int(log.properties().get(naming.COLLAPSED_SEQUENCE) or 0)
        files = self.lake.spark.sql(
            f"SELECT max(sequence_number) FROM {self.lake.qualified(self.table.changes)}.entries "
            f"WHERE status < 2 AND data_file.partition.{naming.INGESTED_AT}_day < DATE '{before}'"
        )
        self._set(naming.COLLAPSED_SEQUENCE, max(known, files.collect()[0][0] or 0))

    def _set(self, name: str, value: object) -> None:
        self.lake.spark.sql(
            f"ALTER TABLE {self.lake.qualified(self.table.changes)} "
            f"SET TBLPROPERTIES ('{name}' = '{value}')"
        )

    def _applied_before(self) -> date:
        """Return the first day that the state may lack; its events must be applied one by one."""
        ingested = applied_through(self.lake, self.table).ingested
        return datetime.fromtimestamp(ingested / 1_000_000, UTC).date()

    def _rows(self, before: date) -> tuple[int, int]:
        """Count the collapsed rows and the rows that could be, from metadata only."""
        done_before = self._done_before()
        days = self.lake.spark.sql(
            f"SELECT partition.{naming.INGESTED_AT}_day AS day, sum(record_count) AS rows "
            f"FROM {self.lake.qualified(self.table.changes)}.partitions GROUP BY 1"
        ).collect()
        collapsed = sum(row["rows"] for row in days if row["day"] < done_before)
        added = sum(row["rows"] for row in days if done_before <= row["day"] < before)
        return collapsed, added

    def _done_before(self) -> date:
        """Return the day before which nothing is left to collapse."""
        done = self.lake.load(self.table.changes).properties().get(naming.COLLAPSE_COMPLETE)
        return date.fromisoformat(done) if done else date.min

    def _can_collapse(self, old: DataFrame) -> bool:
        """Check whether an event since the last collapse replaces or deletes another.

        It reads keys and operations only. In a table that gets nothing but new rows none does.
        """
        added = old.where(f"{naming.INGESTED_AT} >= {_day(self._done_before())}")
        if not added.where(F.col(naming.OP).isin("d", "t")).isEmpty():
            return True
        events = matching_keys(old, added, self.table, "left_semi")
        counted = events.groupBy(*compared_keys(self.table)).agg(F.count("*").alias("cdc__events"))
        return not counted.where("cdc__events > 1").isEmpty()

    def _collapsed(
        self, alive: DataFrame, completed: DataFrame, straddling: DataFrame
    ) -> DataFrame:
        """Fold the old rows to one per key; keep all rows of keys whose deletes are needed."""
        needed = alive.where(F.col(naming.OP) == "d").join(straddling, [*_EVENT], "left_semi")
        since = SPARK.instant(int(self.tombstones_since.timestamp() * 1_000_000))
        dropped = self._dropped(alive)
        changes = matching_keys(completed, needed, self.table, "left_anti")
        with viewed(self._flagged(changes, dropped)) as view:
            folded = self.lake.spark.sql(
                collapsed_rows(
                    self.table, alive.columns, view, tombstones_since=since, dropped=dropped
                )
            )
        # Completed: the events that their values come from are of other keys, and collapse.
        whole = matching_keys(completed, needed, self.table, "left_semi").select(*alive.columns)
        return folded.unionByName(whole)

    def _dropped(self, log: DataFrame) -> list[str]:
        """List the dropped columns whose values the state keeps as well."""
        stored = self.lake.read(self.table.name).columns
        return [c for c in log.columns if naming.is_dropped_column(c) and c in stored]

    def _flagged(self, changes: DataFrame, dropped: list[str]) -> DataFrame:
        """Add a flag per dropped column: whether the state holds a value for the key."""
        if not dropped:
            return changes
        own = {
            f"cdc__key_{index}": to_state(SPARK.name(key.name), key.column_type, SPARK)
            for index, key in enumerate(self.table.key_columns)
        }
        stored = self.lake.read(self.table.name)
        held = stored.select(
            *(
                F.col(key.name).alias(name)
                for name, key in zip(own, self.table.key_columns, strict=True)
            ),
            *(F.col(column).isNotNull().alias(held_flag(dropped, column)) for column in dropped),
        ).where(" OR ".join(held_flag(dropped, column) for column in dropped))
        keyed = changes.withColumns({name: F.expr(value) for name, value in own.items()})
        return keyed.join(held, [*own], "left")


def _straddling(log: DataFrame, before: date) -> DataFrame:
    """Select key changes whose creation is newer than `before`; it needs their deletes."""
    newer = log.where(f"{naming.INGESTED_AT} >= {_day(before)}")
    return newer.where(is_carried_creation(newer)).select(*_EVENT).distinct()


def _day(day: date) -> str:
    return f"TIMESTAMP '{day} 00:00:00+00:00'"
