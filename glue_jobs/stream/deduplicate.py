"""Deduplication: a restarted connector sends the last events again.

The identity of an event is (epoch, table, phase, LSN, op, key): never its offset or the previous
commit's LSN, which a restart may change (docs/architecture.md, "Identity").
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp
from cdclake.jobs.stream.partition_summary import PartitionSummary
from cdclake.plan import Table

_COPIES = "cdc__copies"  # a column of the key may be named `count`


def identity(table: Table) -> list[str]:
    """Return the columns that identify an event of the table."""
    return [naming.EPOCH, naming.PHASE, naming.LSN, naming.OP, *table.key]


def may_repeat_within(summaries: Sequence[PartitionSummary]) -> bool:
    """Return whether the batch may hold an event twice."""
    return any(part.has_repeats or part.overlaps for part in summaries)


def has_repeats(changes: DataFrame, table: Table) -> bool:
    """Return whether the rows hold an event twice; reads the columns of the identity only."""
    copies = changes.groupBy(*identity(table)).agg(F.count("*").alias(_COPIES))
    return not copies.where(f"{_COPIES} > 1").isEmpty()


def without_repeats(changes: DataFrame, table: Table) -> DataFrame:
    """Keep one row per identity among the batch's accepted events: the one sent first.

    Keeping an arbitrary one would be wrong: copies may have different previous commits, and a mix
    of copies could swap two changes of one key.
    """
    copies = Window.partitionBy(*identity(table)).orderBy(naming.OFFSET)
    numbered = changes.withColumn("cdc__copy", F.row_number().over(copies))
    return numbered.where(F.col("cdc__copy") == 1).drop("cdc__copy")


def may_repeat(summaries: Sequence[PartitionSummary], stamp: ChangesStamp) -> bool:
    """Return whether the batch may repeat events of the changelog, which then must be queried.

    That is so if it starts at or below a high-water mark. Marks are only valid in the stamp's
    epoch. Rows of one initial snapshot all have the same LSN: they continue the snapshot, unless a
    different `source.ts` shows that the snapshot was restarted.
    """
    for part in summaries:
        mark = stamp.lsn_marks.get(part.partition)
        if part.lowest_lsn is None or (mark is None and part.partition not in stamp.offsets):
            continue  # the batch or the changelog has no events of the partition
        is_of_marks = part.lowest_epoch == part.epoch == stamp.epoch
        if mark is None or not is_of_marks or part.lowest_lsn < mark:
            return True
        if part.lowest_lsn == mark and not _goes_on_with_snapshot(part, stamp):
            return True
    return False


def _goes_on_with_snapshot(part: PartitionSummary, stamp: ChangesStamp) -> bool:
    return (
        part.snapshot_read_at is not None
        and part.snapshot_read_at == part.snapshot_read_until == stamp.snapshot_read_at
    )


def not_in_log(changes: DataFrame, log: DataFrame, table: Table, lowest_lsn: int) -> DataFrame:
    """Select changes whose identity the changelog lacks; reads only its recent files."""
    recent = log.where(F.col(naming.LSN) >= lowest_lsn).select(*identity(table))
    match = [changes[name].eqNullSafe(recent[name]) for name in identity(table)]
    return changes.join(recent, match, "left_anti")
