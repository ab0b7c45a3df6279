"""Append to a changelog: one stamped commit, which fails if another writer appended meanwhile.

The files of rows are written before (`changelog_job`, `row_files`); a commit only adds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.position import Position, epoch_start
from cdclake.errors import Fenced
from cdclake.fail_points import reach
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp
from cdclake.jobs.iceberg.error_policy import Kind, cause_of, policy
from cdclake.jobs.iceberg.table_handle import TableHandle
from cdclake.jobs.stream.partition_summary import PartitionSummary
from cdclake.jobs.stream.row_files import write_rows

# Partitions of rows without a Kafka record: sweeps and deletes of stale rows; bulk loads; polls.
SYNTHETIC_PARTITION, LOAD_PARTITION, POLL_PARTITION = -1, -2, -3


def append_changes(
    rows: DataFrame,
    changelog: TableHandle,
    *,
    read_from: int | None,
    follows: int,
    stamp: ChangesStamp,
) -> None:
    """Append `rows` (the changelog's columns) with `stamp` in the same commit.

    All rows have the time of ingestion `stamp.ingested_through`; see `commit_files`.
    """
    files = write_rows(rows, changelog.target())
    commit_files(files, changelog, read_from=read_from, follows=follows, stamp=stamp)


def commit_files(
    files: Sequence[str],
    changelog: TableHandle,
    *,
    read_from: int | None,
    follows: int,
    stamp: ChangesStamp,
) -> None:
    """Add described files to a changelog with `stamp`, in one commit; without files, an empty one.

    `read_from` is the snapshot whose stamp the writer has read (None: the changelog was empty), and
    `follows` the time of ingestion in that stamp. All rows have the later time of ingestion
    `stamp.ingested_through`. Raises Fenced, with nothing committed, if another writer has appended
    after `read_from`.
    """
    added = files or [empty_file(changelog, stamp)]
    later = changelog.ingested(after=follows)
    reach("before_changelog_commit")
    with fenced(changelog.name):
        changelog.append(added, read_from=read_from, unless_added=later, stamp=stamp.to_json())
    reach("after_changelog_commit")


@contextmanager
def fenced(name: str) -> Iterator[None]:
    """Raise Fenced if Iceberg refuses a commit to the table, since another writer was there."""
    try:
        yield
    except Py4JJavaError as error:
        refused = cause_of(error, Kind.COMMIT_REFUSED)
        if refused is None:
            raise
        raise Fenced(
            f"another stream has written to {name} since this one read it: {refused.reason}",
            policy(Kind.FENCED).remedy,
        ) from error


def empty_file(changelog: TableHandle, stamp: ChangesStamp) -> str:
    """Write the file of a commit that only has a stamp."""
    at = datetime.fromtimestamp(stamp.ingested_through / 1_000_000, UTC)
    values = {naming.INGESTED_AT: at, naming.PARTITION: SYNTHETIC_PARTITION}
    return changelog.target().write_empty(values)


def ingested_at_column(micros: int) -> str:
    """Return `cdc_ingested_at`, equal for all rows, so that Spark cannot fold it to a constant.

    A literal that differs in every batch would be compiled into the generated classes: each batch
    would compile and warm up its own (measured: most of a small batch's CPU time).
    """
    digits = f"concat('{micros}', substring({naming.OP}, 1, 0))"
    return f"timestamp_micros(CAST({digits} AS bigint)) AS {naming.INGESTED_AT}"


def next_stamp(
    stamp: ChangesStamp,
    summaries: Sequence[PartitionSummary],
    *,
    epoch: int,
    ingested_at: int,
    topic_id: str = "",
) -> ChangesStamp:
    """Compute the changelog's stamp after a batch with these partitions of the topic."""
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
        offsets={**stamp.offsets_in(topic_id), **{p.partition: p.next_offset for p in summaries}},
        ingested_through=ingested_at,
        epoch=epoch,
        lsn_marks=marks,
        snapshot_read_at=read_at,
        topic_id=topic_id or stamp.topic_id,
    )


def sweep_row(rows: DataFrame, position: str, swept_at: int) -> DataFrame:
    """Build a sweep: a truncate by cdclake that deletes all rows below the position.

    A new epoch starts with one, because its snapshot does not report rows deleted in the gap. The
    columns are those of `rows`.
    """
    at = Position.parse(position)
    values = ("t", position, SYNTHETIC_PARTITION, at.epoch, at.prev_commit_lsn, at.phase, at.lsn)
    schema = (
        f"{naming.OP} string, {naming.POSITION} string, {naming.PARTITION} int, "
        f"{naming.EPOCH} int, {naming.PREV_COMMIT_LSN} bigint, {naming.PHASE} int, "
        f"{naming.LSN} bigint"
    )
    swept = rows.sparkSession.createDataFrame([values], schema).withColumns(
        {
            naming.OFFSET: F.lit(0).cast("bigint"),
            naming.COMMITTED_AT: F.timestamp_micros(F.lit(swept_at)),
        }
    )
    return rows.limit(0).unionByName(swept, allowMissingColumns=True)


def epoch_sweep(epoch: int) -> str:
    """Return the position of an epoch's sweep."""
    return str(epoch_start(epoch))
