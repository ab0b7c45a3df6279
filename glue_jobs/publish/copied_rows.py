"""Rows of a copy: those of the whole state, or those whose keys changed since a commit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, DoubleType, FloatType, TimestampNTZType

from cdclake import naming
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.views import AppliedThrough, history_view
from cdclake.jobs.apply.changelog_commits import commits_since, may_lack_deletes
from cdclake.jobs.apply.key_changes import with_completed_creations
from cdclake.jobs.iceberg.commit_metadata import state_stamp
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.publish.copy_stamp import KEY_COLUMN, CopyStamp, record_key
from cdclake.plan import Table

_SEEN = "cdc__position_of_key"


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    """State of a table at one snapshot, and its changelog, which has at least these changes."""

    lake: LakeTables
    table: Table
    applied: AppliedThrough
    state: DataFrame
    changes: DataFrame

    @staticmethod
    def open(lake: LakeTables, table: Table) -> StateSnapshot | None:
        """Open the state as it is now.

        None if no change was applied to it yet, or if it still lacks a column of the plan, which
        the stream adds when it starts.
        """
        stored = lake.stamped(table.name)
        if stored.stamp is None:
            return None
        log = lake.stamped(table.changes)
        state = lake.read(table.name, stored.snapshot_id)
        if not {column.name for column in table.columns}.issubset(state.columns):
            return None
        return StateSnapshot(
            lake,
            table,
            state_stamp(stored.stamp),
            state,
            lake.read(table.changes, log.snapshot_id),
        )

    def whole(self) -> DataFrame:
        """Return all rows of the copy."""
        is_kept = F.lit(True) if self._keeps_deleted else ~F.col(naming.DELETED)
        return self._copied(self.state.where(is_kept))

    def since(self, stamp: CopyStamp) -> DataFrame | None:
        """Return the rows of the keys that changed since; None if all rows must be written.

        That is after a truncate or a new snapshot of the source, which remove rows without an event
        for each, or if a collapse has removed events since. A key without a row becomes a row with
        the operation `d`.
        """
        if self.applied.floor != stamp.floor:
            return None
        if may_lack_deletes(self.lake, self.table, stamp.through):
            return None
        changes = self._changes_since(stamp)
        if not changes.where(F.col(naming.OP) == "t").isEmpty():
            return None
        keys = changes.groupBy(*self.table.key).agg(F.max(naming.POSITION).alias(_SEEN))
        found = keys.join(self.state, [*self.table.key], "left")
        if not self._keeps_deleted:
            is_gone = F.coalesce(F.col(naming.DELETED), F.lit(True))
            found = found.withColumn(naming.OP, F.when(is_gone, "d").otherwise(F.col(naming.OP)))
        position = F.coalesce(naming.POSITION, _SEEN)
        return self._copied(found.withColumn(naming.POSITION, position))

    def _changes_since(self, stamp: CopyStamp) -> DataFrame:
        """Return the changes that the state has applied since, with the state's types.

        They include the creations whose rows late events among them have changed.
        """
        log, table = self.changes, self.table
        at = F.col(naming.INGESTED_AT)
        if table.delivery != "firehose":
            after = stamp.through
            log = log.where(at <= F.expr(SPARK.instant(self.applied.ingested)))
        else:
            found = commits_since(self.lake, table, stamp.through).after
            after = self.applied.ingested if found is None else found
        since = log.where(at > F.expr(SPARK.instant(after)))
        changes = with_completed_creations(since, log) if self.applied.lacked(table) else since
        changes.createOrReplaceTempView(table.changes)
        view = history_view(table, changes=SPARK.name(table.changes), dialect=SPARK)
        return self.lake.spark.sql(view)

    @property
    def _keeps_deleted(self) -> bool:
        return self.table.deletes == "soft"

    def _copied(self, rows: DataFrame) -> DataFrame:
        """Return the columns of the copy, with types that Hudi has."""
        kinds = {field.name: field.dataType for field in rows.schema.fields}
        return rows.select(*self._columns(kinds))

    def _columns(self, kinds: dict[str, DataType]) -> Iterator[SparkColumn]:
        is_live = ~F.col(naming.DELETED) if self._keeps_deleted else F.lit(True)
        for column in self.table.columns:
            value = F.col(column.name)
            if isinstance(kinds[column.name], TimestampNTZType):
                value = value.cast("timestamp")  # the session's zone is UTC
            if column.name not in self.table.key:
                value = F.when(is_live, value) if self._keeps_deleted else value
            yield value.alias(column.name)
        if record_key(self.table) == KEY_COLUMN:
            yield F.to_json(F.array(*(_text(name, kinds[name]) for name in self.table.key))).alias(
                KEY_COLUMN
            )
        ours = [naming.OP, naming.POSITION, naming.COMMITTED_AT]
        yield from map(F.col, [*ours, naming.DELETED] if self._keeps_deleted else ours)


def _text(name: str, kind: DataType) -> SparkColumn:
    """Return the text of this value in a key; values that are equal have the same."""
    if isinstance(kind, BinaryType):
        return F.hex(name)
    if isinstance(kind, (FloatType, DoubleType)):
        return (F.col(name) + F.lit(0.0).cast(kind)).cast("string")  # -0.0 becomes 0.0
    return F.col(name).cast("string")
