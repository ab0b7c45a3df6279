"""Commits to a changelog that Firehose writes, tracked by Iceberg's sequence numbers.

`cdc_ingested_at` is the clock of the function that made the row, minutes before the commit; streams
commit concurrently, retry, and commit twice. A time of ingestion is therefore no watermark: rows
with an earlier one may still arrive. A sequence number is one: each commit gets a greater number,
and files keep theirs, or get a greater one when they are rewritten. The number is valid after its
snapshot has expired, so snapshots need not be kept.
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
    """Commits to a changelog after a sequence number."""

    sequence: int  # of the newest commit
    after: int  # microseconds since 1970; all rows committed since were ingested after it


def committed_sequence(lake: LakeTables, table: Table) -> int:
    """Return the sequence number of the changelog's newest commit; 0 before the first."""
    snapshot = lake.load(table.changes).currentSnapshot()
    return 0 if snapshot is None else int(snapshot.sequenceNumber())


def commits_since(lake: LakeTables, table: Table, sequence: int) -> Commits | None:
    """Return the commits to the changelog after `sequence`; None if none added a row.

    Uses the files' column bounds and reads no file; one without bounds may hold any time.
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
    """Return the progress of a state that holds `rows`, all those committed up to `sequence`.

    The start of the newest epoch (of `epoch` and the rows) is the floor: older rows are deleted.
    """
    newest = rows.agg(
        F.max(F.unix_micros(naming.INGESTED_AT)).alias("ingested"),
        F.max(naming.EPOCH).alias("epoch"),
    ).collect()[0]
    start = max(epoch, newest["epoch"] or 0)
    floor = history_part(str(epoch_start(start))) if start else ""
    return AppliedThrough(ingested=newest["ingested"] or 0, floor=floor, sequence=sequence)
