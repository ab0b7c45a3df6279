"""Rows that were too large for Kafka: markers in the quarantine, which a resync settles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyspark.sql import Row
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.oversized import marker_position
from cdclake.debezium.position import history_part
from cdclake.debezium.refusals import OVERSIZED_RECORD
from cdclake.iceberg.dialect import SPARK
from cdclake.jobs.stream.table_batch import TableBatch
from cdclake.plan import Table


def unread_markers(batch: TableBatch, position: str) -> list[str]:
    """Return the reasons of the markers since `position`: a resync from there lacks their rows."""
    return [row["reason"] for row in _markers(batch) if not _is_below(row, position)]


def release_markers(batch: TableBatch, position: str) -> int:
    """Remove the markers below `position` from the quarantine; return their number.

    Call it when every row of the table has been read since. Idempotent.
    """
    settled = [row for row in _markers(batch) if _is_below(row, position)]
    if settled:
        places = " OR ".join(_places(settled))
        quarantine = batch.lake.qualified(naming.QUARANTINE)
        batch.lake.spark.sql(f"DELETE FROM {quarantine} WHERE {_of(batch.table)} AND ({places})")
    return len(settled)


def _markers(batch: TableBatch) -> list[Row]:
    """Read the table's markers; they are small and few, since a table stops after too many."""
    kept = batch.lake.read(naming.QUARANTINE).where(_of(batch.table))
    found = kept.where(F.col("reason").startswith(OVERSIZED_RECORD))
    return found.select("partition", "offset", "value", "reason").orderBy("offset").collect()


def _of(table: Table) -> str:
    return f"topic = {SPARK.text(table.topic)} AND `table` = {SPARK.text(table.name)}"


def _is_below(row: Row, position: str) -> bool:
    at = marker_position(bytes(row["value"]), row["offset"])
    return history_part(at) < history_part(position)


def _places(rows: Sequence[Row]) -> Iterator[str]:
    for row in rows:
        yield f"(partition = {row['partition']} AND offset = {row['offset']})"
