"""Replay: quarantined events that are accepted now go into the log, where they belong.

The stream does it itself, so the log keeps its one writer. First the events are appended, then they
leave the quarantine; in between, or asked for twice, the log knows them by their identity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.iceberg.collapse import YOUNG
from cdclake.iceberg.dialect import SPARK
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.stream.append import next_stamp
from cdclake.jobs.stream.batch_stats import PartitionSummary
from cdclake.jobs.stream.decode import REFUSAL, Reason
from cdclake.jobs.stream.deduplicate import not_in_log, without_repeats
from cdclake.jobs.stream.kafka_range import RECORD_COLUMNS
from cdclake.jobs.stream.reader import Decoded
from cdclake.jobs.stream.table_batch import TableBatch
from cdclake.plan import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What became of a table's quarantined events."""

    replayed: int  # the log has them now
    known: int  # accepted now, but the log had them, or they were there twice
    refused: Mapping[str, int]  # by reason; they stay as they were

    @property
    def released(self) -> int:
        """Events that left the quarantine."""
        return self.replayed + self.known


def replay_quarantine(batch: TableBatch, *, epoch: int) -> Replayed:
    """Bring the table's quarantined events that are accepted now into its log and state.

    They take no Kafka offset and move none: the log's stamp keeps its offsets. `epoch` is the
    stream's, for a log that has no stamp yet. Doing it again changes nothing.
    """
    with batch.reader.read_late(_held(batch), _too_old(batch.table)) as decoded:
        accepted = sum(part.accepted for part in decoded.parts)
        replayed = _append(batch, decoded, epoch) if accepted else 0
        if accepted:
            _release(batch, decoded.rows)
        refused = _reasons(decoded.rows)
    return Replayed(replayed=replayed, known=accepted - replayed, refused=refused)


def _held(batch: TableBatch) -> DataFrame:
    """The table's quarantined records, as Kafka had them; of one snapshot, however often read."""
    snapshot = batch.lake.stamped(naming.QUARANTINE).snapshot_id
    held = batch.lake.read(naming.QUARANTINE, snapshot)
    mine = (F.col("topic") == batch.table.topic) & (F.col("table") == batch.table.name)
    return held.where(mine).select(*RECORD_COLUMNS)


def _too_old(table: Table) -> Reason:
    """Against events whose row may have been deleted so long ago that its tombstone is purged."""
    may_revive = ~F.col(naming.OP).isin("d", "t") & F.lit(table.deletes == "hard")
    since = F.lit(datetime.now(UTC) - YOUNG)
    return may_revive & (F.col(naming.COMMITTED_AT) < since), refusals.TOO_OLD


def _append(batch: TableBatch, decoded: Decoded, epoch: int) -> int:
    stamped, stamp = batch.read_stamp()
    rows = without_repeats(decoded.rows.where(F.col(REFUSAL).isNull()), batch.table)
    if stamped.snapshot_id is not None:
        log = batch.lake.read(batch.table.changes, stamped.snapshot_id)
        lowest = min(part.lowest_lsn for part in decoded.parts if part.lowest_lsn is not None)
        rows = not_in_log(rows, log, batch.table, lowest)
    marked = _marked(stamp, decoded.parts, epoch)
    with persisted(rows):
        return batch.add(rows, read_from=stamped.snapshot_id, stamp=marked)


def _marked(stamp: ChangesStamp, summaries: list[PartitionSummary], epoch: int) -> ChangesStamp:
    """The stamp with these events' LSNs: if the connector sends them again, they are looked up."""
    marked = next_stamp(
        stamp, summaries, epoch=stamp.epoch or epoch, ingested_at=stamp.ingested_through
    )
    return replace(marked, offsets=stamp.offsets)


def _release(batch: TableBatch, decoded: DataFrame) -> None:
    """Delete exactly the accepted records from the quarantine."""
    accepted = decoded.where(F.col(REFUSAL).isNull()).select(naming.PARTITION, naming.OFFSET)
    batch.lake.spark.sql(
        f"MERGE INTO {batch.lake.qualified(naming.QUARANTINE)} AS q USING {{accepted}} AS s "
        f"ON q.topic = {SPARK.text(batch.table.topic)} AND q.`table` = "
        f"{SPARK.text(batch.table.name)} AND q.partition = s.{naming.PARTITION} "
        f"AND q.offset = s.{naming.OFFSET} WHEN MATCHED THEN DELETE",
        accepted=accepted.distinct(),
    )


def _reasons(decoded: DataFrame) -> dict[str, int]:
    rows = decoded.where(F.col(REFUSAL).isNotNull()).groupBy(REFUSAL).count().collect()
    return {row[REFUSAL]: row["count"] for row in rows}
