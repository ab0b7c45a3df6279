"""Repeats: the same event read twice, which a connector's restart makes by sending a suffix again.

The identity of an event is (epoch, table, phase, LSN, op, key): never its offset or the previous
commit's LSN, which a restart may change (contract, section 3).
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp
from cdclake.jobs.stream.batch_stats import PartitionSummary
from cdclake.plan import Table


def identity(table: Table) -> list[str]:
    """The log's columns that tell one event of a table from another."""
    return [naming.EPOCH, naming.PHASE, naming.LSN, naming.OP, *table.key]


def may_repeat_within(summaries: list[PartitionSummary]) -> bool:
    """Whether the batch itself may hold an event twice: then two rows stand at one LSN."""
    return any(part.rows_at_one_lsn > 1 for part in summaries)


def without_repeats(changes: DataFrame, table: Table) -> DataFrame:
    """One row of each identity within the batch's accepted events: the one that was sent first.

    Never any: copies may name different previous commits, and a mix of copies could put two changes
    of one key the wrong way round.
    """
    copies = Window.partitionBy(*identity(table)).orderBy(naming.OFFSET)
    numbered = changes.withColumn("cdc__copy", F.row_number().over(copies))
    return numbered.where(F.col("cdc__copy") == 1).drop("cdc__copy")


def may_repeat(summaries: list[PartitionSummary], stamp: ChangesStamp) -> bool:
    """Whether the batch starts at or below what the log holds, so that the log must be looked up.

    The marks are of the stamp's epoch: where another one has a part they tell nothing. Rows of one
    initial snapshot all stand at one LSN: they go on where they were, unless another reading of the
    table (another `source.ts`) shows that the snapshot began again.
    """
    for part in summaries:
        mark = stamp.lsn_marks.get(part.partition)
        if part.lowest_lsn is None or (mark is None and part.partition not in stamp.offsets):
            continue  # there is nothing of it, here or there
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
    """The changes whose identity the log does not hold; reads only the log's recent files."""
    recent = log.where(F.col(naming.LSN) >= lowest_lsn).select(*identity(table))
    match = [changes[name].eqNullSafe(recent[name]) for name in identity(table)]
    return changes.join(recent, match, "left_anti")
