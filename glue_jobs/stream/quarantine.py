"""Quarantine of refused events, with their bytes and the reason.

The batch's job writes their files, as it does those of the changelogs. All tables share the
quarantine, so a commit is fenced by its records' topic and offsets only. If the fence refuses it
although the other writer has added none of these records, the commit is retried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.errors import Fenced
from cdclake.fail_points import reach
from cdclake.iceberg.limit_condition import is_withheld
from cdclake.jobs.control.table_progress import NewlyRefused
from cdclake.jobs.iceberg.data_file import rows_of
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.iceberg.table_handle import TableHandle
from cdclake.jobs.stream.append import fenced
from cdclake.jobs.stream.changelog_columns import REFUSAL
from cdclake.jobs.stream.changelog_job import TableShare
from cdclake.jobs.stream.row_files import read_rows, write_rows
from cdclake.plan import Table

Offsets = tuple[int, int]  # lowest and highest


class Quarantined(NamedTuple):
    """Numbers of records: those that the quarantine lacked, and all that a rule withholds."""

    added: int
    withheld: int


def quarantine_files(
    files: Sequence[str],
    offsets: Offsets,
    lake: LakeTables,
    table: Table,
    announce: Callable[[Sequence[str]], None] = lambda lacking: None,
) -> int:
    """Commit described files of refused records to the quarantine; return how many it lacked.

    All records are of the table's topic and within `offsets`. Idempotent: known ones are found by
    their place, key and value. Calls `announce` with files of those that it lacks before it
    commits them. Raises Fenced if another writer has added some of these records meanwhile.
    """
    handle = TableHandle(lake, naming.QUARANTINE)  # operations and bulk loads write to it as well
    places = _places(handle, table.topic, offsets)
    files, read_from = _lacking(files, offsets, lake, handle, table)
    if files:
        announce(files)
    while files:
        try:
            with fenced(handle.name):
                handle.append(files, read_from=read_from, unless_added=places)
        except Fenced:
            # By their bounds, files of another table or of a replay may hold these places too.
            refused, (files, read_from) = files, _lacking(files, offsets, lake, handle, table)
            if _count(files) < _count(refused):
                raise
        else:
            reach("after_quarantine_commit")
            break
    return _count(files)


def _count(files: Sequence[str]) -> int:
    return sum(rows_of(file) for file in files)


def newly_refused(
    files: Sequence[str], share: TableShare, counted: Mapping[int, int], lake: LakeTables
) -> NewlyRefused:
    """Count the records in these files of the share, except those before the counted offsets.

    Rows are read only if an earlier run of the batch has counted or quarantined some of them.
    """
    if counted or files != share.refused:
        count, withheld = _count_from(files, counted, lake)
    else:
        count, withheld = _count(files), sum(part.withheld for part in share.parts)
    # Withheld rows are intended: they neither stop the table nor raise an alarm.
    through = {part.partition: part.next_offset for part in share.parts}
    return NewlyRefused(count - withheld, withheld, through)


def _count_from(
    files: Sequence[str], first: Mapping[int, int], lake: LakeTables
) -> tuple[int, int]:
    """Count the files' records from these offsets on: all, and those that a rule withholds."""
    target = TableHandle(lake, naming.QUARANTINE).target()
    rows = read_rows(files, target, lake.read(naming.QUARANTINE).limit(0))
    for partition, offset in first.items():
        rows = rows.where((F.col("partition") != partition) | (F.col("offset") >= offset))
    withheld = F.count_if(F.expr(is_withheld("reason")))
    [(count, count_withheld)] = rows.agg(F.count("*"), withheld).collect()
    return count, count_withheld


def _lacking(
    files: Sequence[str], offsets: Offsets, lake: LakeTables, handle: TableHandle, table: Table
) -> tuple[Sequence[str], int | None]:
    """Return files of the records that the quarantine lacks, and the snapshot that was read."""
    read_from = handle.stamped().snapshot_id
    places = _places(handle, table.topic, offsets)
    if handle.may_have(places):
        kept = lake.read(naming.QUARANTINE, read_from)
        files = _unknown(files, offsets, handle, kept, table)
    return files, read_from


def _places(handle: TableHandle, topic: str, offsets: Offsets) -> Any:
    """Return Iceberg's expression for records of the topic within the offsets."""
    java, (first, last) = handle.expressions, offsets
    within = getattr(java, "and")(  # a keyword of Python
        java.greaterThanOrEqual("offset", first), java.lessThanOrEqual("offset", last)
    )
    return getattr(java, "and")(java.equal("topic", topic), within)


def _unknown(
    files: Sequence[str], offsets: Offsets, handle: TableHandle, kept: DataFrame, table: Table
) -> Sequence[str]:
    """Return files of those records in `files` that are not among the kept ones.

    A place alone names no record: a topic that was created again has its offsets once more.
    """
    known = kept.where((F.col("topic") == table.topic) & F.col("offset").between(*offsets))
    if known.isEmpty():
        return files
    rows = read_rows(files, handle.target(), kept.limit(0))
    same = "n.partition = k.partition AND n.offset = k.offset AND n.key <=> k.key"
    is_kept = F.expr(f"{same} AND n.value <=> k.value")
    return write_rows(rows.alias("n").join(known.alias("k"), is_kept, "left_anti"), handle.target())


def quarantine_rows(
    events: DataFrame, record: Mapping[str, str], lake: LakeTables, table: Table
) -> Quarantined:
    """Quarantine the refused ones of decoded events without a Kafka record.

    `record` maps `key`, `value` and `headers` to columns of `events`, which must be deterministic.
    """
    refused = events.where(F.col(REFUSAL).isNotNull()).select(
        F.lit(table.topic).alias("topic"),
        F.col(naming.PARTITION).alias("partition"),
        F.col(naming.OFFSET).alias("offset"),
        *(F.col(column).alias(name) for name, column in record.items()),
        F.col(REFUSAL).alias("reason"),
        F.lit(table.name).alias("table"),
        F.current_timestamp().alias("quarantined_at"),
    )
    with persisted(refused):
        withheld = F.count_if(F.expr(is_withheld("reason")))
        [(first, last, count)] = refused.agg(F.min("offset"), F.max("offset"), withheld).collect()
        if first is None:
            return Quarantined(0, 0)
        files = write_rows(refused, TableHandle(lake, naming.QUARANTINE).target())
        return Quarantined(quarantine_files(files, (first, last), lake, table), count)
