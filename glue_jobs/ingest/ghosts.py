"""Ghosts: rows of the lake that a new reading of their table did not find in the source.

Every row that the source has was read, or changed, after the reading was asked for. So a key whose
newest event lies below that position is gone from the source, and gets a delete of ours there. No
floor, as a truncate would set: a row that changed while it was read has its unchanged large values
below that position (correctness 1.3), and keeps them.
"""

from __future__ import annotations

import time

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.position import Position
from cdclake.debezium.position import history_part as history_of
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.fold import history_part
from cdclake.plan import Table
from glue_jobs.ingest.append import SYNTHETIC_PARTITION
from glue_jobs.ingest.table_batch import TableBatch


def sweep_ghosts(batch: TableBatch, position: str) -> int:
    """Delete the rows whose newest event lies below `position`; how many there were.

    Call it when everything that the reading brought is in the log. Doing it again finds none.
    """
    stamped, stamp = batch.read_stamp()
    if stamped.snapshot_id is None:
        return 0
    log = batch.lake.read(batch.table.changes, stamped.snapshot_id)
    deletes = _deletes(log, batch.table, position).cache()
    try:
        return batch.add(deletes, stamp)
    finally:
        deletes.unpersist()


def _deletes(log: DataFrame, table: Table, position: str) -> DataFrame:
    """A delete of ours for each ghost, in the log's columns."""
    keys = [F.col(SPARK.name(name)) for name in table.key]
    ghosts = _ghosts(log, table, history_of(position)).select(*keys)
    return log.limit(0).unionByName(
        ghosts.withColumns(_facts(table, position)), allowMissingColumns=True
    )


def _ghosts(log: DataFrame, table: Table, below: str) -> DataFrame:
    """The keys that live in the lake, and of which nothing was heard since `below`."""
    history = history_part(naming.POSITION)
    truncates = log.where(F.col(naming.OP) == "t")
    floor = truncates.agg(F.expr(f"max({history}) AS floor")).collect()[0]["floor"] or ""
    return (
        log.where(F.col(naming.OP) != "t")
        .groupBy(*(F.col(SPARK.name(name)) for name in table.key))
        .agg(
            F.expr(f"max({naming.POSITION}) AS {naming.POSITION}"),
            F.expr(f"max_by({naming.OP}, {naming.POSITION}) AS {naming.OP}"),
        )
        .where(f"{history} < {SPARK.text(below)} AND {history} >= {SPARK.text(floor)}")
        .where(F.col(naming.OP) != "d")
    )


def _facts(table: Table, position: str) -> dict[str, Expression]:
    at = Position.parse(position)
    # Under soft deletes a deleted row keeps its last values; this delete brings none.
    kept = table.carried if table.deletes == "soft" else ()
    names = F.array(*(F.lit(name) for name in kept)) if kept else F.lit(None)
    return {
        naming.OP: F.lit("d"),
        naming.POSITION: F.lit(position),
        naming.COMMITTED_AT: F.timestamp_micros(F.lit(time.time_ns() // 1000)),
        naming.PARTITION: F.lit(SYNTHETIC_PARTITION),
        naming.OFFSET: F.lit(at.offset).cast("bigint"),
        naming.UNAVAILABLE: names.cast("array<string>"),
        naming.EPOCH: F.lit(at.epoch).cast("int"),
        naming.LSN: F.lit(at.lsn).cast("bigint"),
        naming.PREV_COMMIT_LSN: F.lit(at.prev_commit_lsn).cast("bigint"),
        naming.PHASE: F.lit(at.phase).cast("int"),
    }
