"""The append of a batch to a log: one commit, stamped, and refused if somebody was there first.

Iceberg appends never conflict by themselves. An overwrite of the batch's own offset range,
validated from the snapshot in which the stamp was read, deletes nothing and fails if another
writer has appended any of these offsets since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import reduce

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.position import epoch_start
from glue_jobs.ingest.repeats import PartitionSummary
from glue_jobs.runtime.stamps import ChangesStamp
from glue_jobs.runtime.tables import LakeTables

SYNTHETIC_PARTITION = -1  # of rows that no Kafka record stands behind: the sweeps
_MICROS_PER_DAY = 86_400_000_000


def append_changes(
    rows: DataFrame,
    lake: LakeTables,
    log: str,
    *,
    ranges: Mapping[int, tuple[int, int]],
    read_from: int | None,
    stamp: ChangesStamp,
) -> None:
    """Append `rows` (the log's columns) with `stamp` in the same commit.

    `ranges` are the batch's offsets by partition, first and next; `read_from` is the snapshot in
    which the log's stamp was read. Raises Iceberg's ValidationException, with nothing written, if
    another writer appended in these ranges after it.
    """
    writer = (
        lake.completed(rows, log)
        .writeTo(lake.qualified(log))
        .option(f"snapshot-property.{naming.STAMP_PROPERTY}", stamp.to_json())
        .option("isolation-level", "serializable")
        .option("fanout-enabled", "true")
    )
    if not ranges:  # sweeps and repairs, which no offset of this batch stands behind
        writer.append()
        return
    if read_from is not None:
        writer = writer.option("validate-from-snapshot-id", str(read_from))
    writer.overwrite(_claimed(ranges, stamp.ingested_through))


def _claimed(ranges: Mapping[int, tuple[int, int]], ingested_at: int) -> Expression:
    """The offsets that this batch claims; bounded by ingestion, so that old files stay unread."""
    claims = [
        (F.col(naming.PARTITION) == partition)
        & (F.col(naming.OFFSET) >= first)
        & (F.col(naming.OFFSET) < following)
        for partition, (first, following) in sorted(ranges.items())
    ]
    recent = F.expr(f"{naming.INGESTED_AT} >= {_instant(ingested_at - _MICROS_PER_DAY)}")
    return recent & reduce(lambda left, right: left | right, claims)


def _instant(micros: int) -> str:
    # A literal, since a data source filter can't call timestamp_micros.
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    return f"timestamp'{at.isoformat()}'"


def next_stamp(
    stamp: ChangesStamp, summaries: Sequence[PartitionSummary], *, epoch: int, ingested_at: int
) -> ChangesStamp:
    """The log's stamp after a batch with these partitions."""
    marks = dict(stamp.lsn_marks) if epoch == stamp.epoch else {}
    read_at = stamp.snapshot_read_at if epoch == stamp.epoch else 0
    for part in summaries:
        if part.highest_lsn is None:
            continue
        previous = marks.get(part.partition, -1)
        if part.highest_lsn > previous and part.snapshot_read_at is not None:
            read_at = part.snapshot_read_at
        marks[part.partition] = max(previous, part.highest_lsn)
    return ChangesStamp(
        offsets={**stamp.offsets, **{p.partition: p.next_offset for p in summaries}},
        ingested_through=ingested_at,
        epoch=epoch,
        lsn_marks=marks,
        snapshot_read_at=read_at,
    )


def sweep_rows(rows: DataFrame, positions: Sequence[str], swept_at: int) -> DataFrame:
    """Truncates that no database made: at each position, what lies below it is gone.

    A new epoch starts with one, for its snapshot says nothing about rows deleted in the gap; so
    does a table that joins again. `rows` gives the columns.
    """
    spark = rows.sparkSession
    at = F.timestamp_micros(F.lit(swept_at))
    parts = [position.split(".") for position in positions]
    values = [
        (
            "t",
            position,
            SYNTHETIC_PARTITION,
            int(part[0], 16),
            int(part[1], 16),
            int(part[2]),
            int(part[3], 16),
        )
        for position, part in zip(positions, parts, strict=True)
    ]
    schema = (
        f"{naming.OP} string, {naming.POSITION} string, {naming.PARTITION} int, "
        f"{naming.EPOCH} int, {naming.PREV_COMMIT_LSN} bigint, {naming.PHASE} int, "
        f"{naming.LSN} bigint"
    )
    swept = spark.createDataFrame(values, schema).withColumns(
        {naming.OFFSET: F.lit(0).cast("bigint"), naming.COMMITTED_AT: at}
    )
    return rows.limit(0).unionByName(swept, allowMissingColumns=True)


def epoch_sweep(epoch: int) -> str:
    """The position of the sweep that an epoch begins with."""
    return str(epoch_start(epoch))
