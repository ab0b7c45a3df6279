"""What has been committed to a log that Firehose writes, by Iceberg's sequence numbers.

`cdc_ingested_at` is the clock of the function that made the row, minutes before the commit; streams
commit side by side, retry, and commit twice. So no moment of ingestion is one below which nothing
comes any more. A commit's sequence number is: Iceberg gives each commit a greater one, and files
keep theirs, or get a greater one, whatever rewrites them. That is also why the snapshots need not
be kept: a number outlives its snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.position import epoch_start, history_part
from cdclake.iceberg.views import BEFORE_ALL, AppliedThrough
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.plan import Table


@dataclass(frozen=True, slots=True)
class Commits:
    """What was committed to a log after a sequence number."""

    sequence: int  # of the newest commit
    after: int  # microseconds since 1970; all rows committed since were ingested after it


def committed_sequence(lake: LakeTables, table: Table) -> int:
    """The sequence number of the log's newest commit; 0 before the first."""
    snapshot = lake.load(table.changes).currentSnapshot()
    return 0 if snapshot is None else int(snapshot.sequenceNumber())


def commits_since(lake: LakeTables, table: Table, sequence: int) -> Commits | None:
    """What has been committed to the table's log since then; None if no row has.

    By the bounds of the files, so without reading them; a file without bounds may hold any moment.
    """
    newest = committed_sequence(lake, table)
    if newest <= sequence:
        return None
    ingested = f"readable_metrics.{naming.INGESTED_AT}.lower_bound"
    entries = lake.spark.read.table(f"{lake.qualified(table.changes)}.entries")
    row = (
        entries.where(f"status < 2 AND sequence_number > {sequence}")
        .agg(
            F.count(F.lit(1)).alias("files"),
            F.expr(f"count_if({ingested} IS NULL)").alias("unbounded"),
            F.expr(f"unix_micros(min({ingested}))").alias("first"),
        )
        .collect()[0]
    )
    if row["files"] == 0:
        return None
    return Commits(newest, BEFORE_ALL if row["unbounded"] else row["first"] - 1)


def reached(rows: DataFrame, sequence: int, epoch: int) -> AppliedThrough:
    """What a state has reached that takes these rows, all that was committed up to `sequence`.

    Where the newest epoch among `epoch` and theirs begins, what lies below is gone.
    """
    newest = rows.agg(
        F.max(F.unix_micros(naming.INGESTED_AT)).alias("ingested"),
        F.max(naming.EPOCH).alias("epoch"),
    ).collect()[0]
    start = max(epoch, newest["epoch"] or 0)
    floor = history_part(str(epoch_start(start))) if start else ""
    return AppliedThrough(ingested=newest["ingested"] or 0, floor=floor, sequence=sequence)
