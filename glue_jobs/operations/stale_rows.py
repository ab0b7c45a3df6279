"""Ghosts: rows of the lake that a new reading of their table did not find in the source.

Every row that the source has was read, or changed, after the reading was asked for. So a key whose
newest event lies below that position is gone from the source, and gets a delete of ours there. No
floor, as a truncate would set: a row that changed while it was read has its unchanged large values
below that position (correctness 1.3), and keeps them.

Such a change may even come after the sweep, for Kafka promises no order between topics, and the end
of the reading was said in another one. It undoes the delete; since that brings no values, the row
has again what it had.
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
from cdclake.iceberg.latest_row import history_part
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.stream.append import SYNTHETIC_PARTITION
from cdclake.jobs.stream.table_batch import TableBatch
from cdclake.plan import Table


def delete_stale_rows(batch: TableBatch, position: str) -> int:
    """Delete the rows whose newest event lies below `position`; how many there were.

    Call it when everything that the reading brought is in the log. Doing it again finds none.
    """
    stamped, stamp = batch.read_stamp()
    if stamped.snapshot_id is None:
        return 0
    log = batch.lake.read(batch.table.changes, stamped.snapshot_id)
    with persisted(_deletes(log, batch.table, position)) as deletes:
        return batch.add(deletes, read_from=stamped.snapshot_id, stamp=stamp)


def count_older_values(batch: TableBatch, position: str) -> int:
    """Rows heard of since `position` of which some value is older, or was never seen.

    Right where the lake missed no change of the table. Where it did, such a value may have changed
    meanwhile.
    """
    table, below = batch.table, history_of(position)
    if not table.toastable:
        return 0
    rows = batch.lake.read(table.changes).where(F.col(naming.OP) != "t")
    newest_values = {name: _newest_value(name) for name in table.toastable}
    heard = _by_key(rows, table, **newest_values).where(
        f"{history_part(naming.POSITION)} >= {SPARK.text(below)} AND {naming.OP} <> 'd'"
    )
    is_older = " OR ".join(
        f"{history_part(value)} < {SPARK.text(below)}"
        for value in (f"coalesce({SPARK.name(f'cdc__at_{name}')}, '')" for name in table.toastable)
    )
    return heard.where(is_older).count()


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
        _by_key(log.where(F.col(naming.OP) != "t"), table)
        .where(f"{history} < {SPARK.text(below)} AND {history} >= {SPARK.text(floor)}")
        .where(F.col(naming.OP) != "d")
    )


def _by_key(rows: DataFrame, table: Table, **more: Expression) -> DataFrame:
    """Each key with the position and the operation of its newest event, and `more`."""
    return rows.groupBy(*(F.col(SPARK.name(name)) for name in table.key)).agg(
        F.expr(f"max({naming.POSITION}) AS {naming.POSITION}"),
        F.expr(f"max_by({naming.OP}, {naming.POSITION}) AS {naming.OP}"),
        *(value.alias(f"cdc__at_{name}") for name, value in more.items()),
    )


def _newest_value(column: str) -> Expression:
    """The position of the newest event that brought a value of the column."""
    is_listed = SPARK.contains(naming.UNAVAILABLE, column)
    brought = f"{naming.OP} <> 'd' AND ({naming.UNAVAILABLE} IS NULL OR NOT {is_listed})"
    return F.expr(f"max(IF({brought}, {naming.POSITION}, NULL))")


def _facts(table: Table, position: str) -> dict[str, Expression]:
    at = Position.parse(position)
    # This delete brings no values: what a later event does not bring either is as it was.
    carried = [F.lit(name) for name in table.toastable]
    names = F.array(*carried) if carried else F.lit(None)
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
