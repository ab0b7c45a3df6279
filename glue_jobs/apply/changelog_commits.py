"""Commits to a changelog that Firehose writes, tracked by Iceberg's sequence numbers.

`cdc_ingested_at` is the clock of the function that made the row, minutes before the commit; streams
commit concurrently, retry, and commit twice. A time of ingestion is therefore no watermark: rows
with an earlier one may still arrive. A sequence number is one: each commit gets a greater number,
and files keep theirs, or get a greater one when they are rewritten. The number is valid after its
snapshot has expired, so snapshots need not be kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.firehose.arrival import OFFSET_AFTER, in_topic_since
from cdclake.iceberg.collapse import complete_before, midnight
from cdclake.iceberg.views import BEFORE_ALL, AppliedThrough
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.plan import Table


@dataclass(frozen=True, slots=True)
class Commits:
    """Commits to a changelog after a sequence number."""

    sequence: int  # of the newest commit
    after: int | None  # microseconds since 1970, before the ingestion of all new rows; None: none


def committed_sequence(lake: LakeTables, table: Table) -> int:
    """Return the sequence number of the changelog's newest commit; 0 before the first."""
    return _newest_sequence(lake.load(table.changes))


def commits_since(lake: LakeTables, table: Table, sequence: int) -> Commits:
    """Return the commits to the changelog after `sequence`, which the caller has applied.

    Uses the files' column bounds and reads no file; one without bounds may hold any time. Leaves
    out files that a collapse has rewritten and that have no new row.
    """
    log = lake.load(table.changes)
    newest = _newest_sequence(log)
    if newest <= sequence:
        return Commits(sequence, None)
    ingested = f"readable_metrics.{naming.INGESTED_AT}"
    has_new = f"status < 2 AND sequence_number > {sequence}"
    known = complete_before(log.properties(), sequence)
    if known is not None:
        has_new += f" AND coalesce(unix_micros({ingested}.upper_bound) >= {known}, true)"
    row = (
        lake.spark.read.table(f"{lake.qualified(table.changes)}.entries")
        .where(has_new)
        .agg(
            F.count(F.lit(1)).alias("files"),
            F.expr(f"count_if({ingested}.lower_bound IS NULL)").alias("unbounded"),
            F.expr(f"unix_micros(min({ingested}.lower_bound))").alias("first"),
        )
        .collect()[0]
    )
    if row["files"] == 0:
        return Commits(newest, None)
    return Commits(newest, BEFORE_ALL if row["unbounded"] else row["first"] - 1)


def may_lack_deletes(lake: LakeTables, table: Table, through: int) -> bool:
    """Check whether deletes may have collapsed that a reader of the changes lacks.

    The reader has all changes up to `through`: a sequence number for Firehose, otherwise a time of
    ingestion. Check after the changelog is read, as the properties are set before a collapse.
    """
    properties = lake.load(table.changes).properties()
    if table.delivery == "firehose":
        return through < int(properties.get(naming.COLLAPSED_SEQUENCE) or 0)
    before = properties.get(naming.COLLAPSED_BEFORE)
    return before is not None and through < midnight(before)


def reached(rows: DataFrame, sequence: int, floor: str) -> AppliedThrough:
    """Return the progress of a state that holds `rows`, all those committed up to `sequence`.

    A complete snapshot has replaced the rows below `floor`, which are deleted.
    """
    newest = rows.agg(F.max(F.unix_micros(naming.INGESTED_AT)).alias("ingested")).collect()[0]
    return AppliedThrough(ingested=newest["ingested"] or 0, floor=floor, sequence=sequence)


def passed_at(
    lake: LakeTables, tables: Sequence[Table], since: int, ends: Mapping[int, int]
) -> dict[int, float]:
    """Return by Kafka partition when the first event that reaches its end was ingested.

    The changelogs are those of one topic, which has the events since this epoch. Times are in
    seconds since 1970; a partition is missing until its end is reached. Earlier events may still
    be on their way: Firehose repeats calls of its function, and appends.
    """
    reaches = " OR ".join(
        f"({naming.PARTITION} = {partition} AND {OFFSET_AFTER} >= {end})"
        for partition, end in ends.items()
    )
    found: dict[int, float] = {}
    for table in tables if reaches else ():
        events = lake.read(table.changes).where(in_topic_since(since)).where(reaches)
        first = F.expr(f"unix_micros(min({naming.INGESTED_AT}))")
        for partition, ingested_us in events.groupBy(naming.PARTITION).agg(first).collect():
            ingested = ingested_us / 1_000_000
            found[partition] = min(ingested, found.get(partition, ingested))
    return found


def _newest_sequence(log: Any) -> int:
    snapshot = log.currentSnapshot()
    return 0 if snapshot is None else int(snapshot.sequenceNumber())
