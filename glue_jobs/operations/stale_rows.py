"""Stale rows: rows of the lake that an incremental snapshot did not find in the source.

The snapshot reads every row of the source after the position of its request, unless the row changes
meanwhile. So a key whose newest event is below that position is gone from the source, and gets a
synthetic delete at the position. A floor, as a truncate sets it, would be wrong: a row that changed
during the snapshot keeps its unchanged TOAST values, whose events are below the
position (docs/architecture.md, "Resync").

Such a change may arrive even after the delete, because Kafka guarantees no order between topics and
the end of the snapshot is announced in another topic. It undoes the delete. Since a synthetic
delete has no values, the row then has its earlier values again.
"""

from __future__ import annotations

import time
from dataclasses import replace

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.position import SNAPSHOT_PHASE, Position
from cdclake.debezium.position import history_part as history_of
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.latest_row import history_part
from cdclake.jobs.iceberg.events_of_keys import (
    compared_keys,
    matching_keys,
    newest_of_keys,
)
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.stream.append import SYNTHETIC_PARTITION
from cdclake.jobs.stream.changelog_columns import FINDINGS
from cdclake.jobs.stream.quarantined_rows import with_quarantined, with_withheld
from cdclake.jobs.stream.table_stream import TableStream
from cdclake.plan import Table


def delete_stale_rows(stream: TableStream, position: str) -> int:
    """Delete the rows whose newest event is below `position`; return how many there were.

    Rows with a refused event since then are not stale. Call it when all events of the snapshot are
    in the changelog. Idempotent: a second call finds no rows.
    """
    changelog = stream.read_changelog()
    stamped, stamp = changelog.stamped, changelog.stamp
    if stamped.snapshot_id is None:
        return 0
    log = stream.lake.read(stream.table.changes, stamped.snapshot_id)
    known = with_quarantined(log, stream.lake, stream.table, stream.plan, position)
    with persisted(_deletes(log, known, stream.table, position)) as deletes:
        return stream.add(deletes, read_from=stamped.snapshot_id, stamp=stamp)


def deletes_of_unread(stream: TableStream, log: DataFrame, rows: DataFrame) -> DataFrame:
    """Return a synthetic delete for each row that was gone before the last complete read.

    `rows` are older events that `log`, the changelog, will get now: the read could not know their
    keys. Append the deletes in the same commit.
    """
    table, read_from = stream.table, stream.place.read_from
    none = log.limit(0)
    if not read_from:
        return none
    position = _below_rows(read_from)
    is_older = f"{history_part(naming.POSITION)} < {SPARK.text(history_of(position))}"
    keys = rows.where(f"{is_older} AND {naming.OP} <> 't'").select(*map(SPARK.name, table.key))
    if keys.isEmpty():
        return none
    known = with_quarantined(log, stream.lake, table, stream.plan, position)
    known = known.unionByName(rows.drop(*FINDINGS), allowMissingColumns=True)
    truncates = known.where(F.col(naming.OP) == "t")
    of_keys = matching_keys(known, keys, table, "left_semi")
    return _deletes(log, of_keys.unionByName(truncates), table, position)


def _below_rows(read_from: str) -> str:
    """Return a position below all rows of a read, and above all earlier events.

    The first row of an epoch's snapshot may be at the position where the snapshot begins.
    """
    at = Position.parse(read_from)
    if at.phase == SNAPSHOT_PHASE:
        at = replace(at, lsn=max(0, at.lsn - 1))
    return str(at)


def count_read_rows(stream: TableStream, position: str) -> int:
    """Count the keys with an event at or after `position`: at least the rows that were read.

    A row that the connector has read is one of them, or was changed meanwhile. There are fewer if
    the changelog has not taken rows: then nothing is known of those that are missing. Rows that a
    rule withholds count as read.
    """
    log = stream.lake.read(stream.table.changes)
    rows = with_withheld(log, stream.lake, stream.table, stream.plan).where(
        f"{history_part(naming.POSITION)} >= {SPARK.text(history_of(position))}"
        f" AND {naming.OP} <> 't'"
    )
    return rows.select(*compared_keys(stream.table)).distinct().count()


def count_older_values(stream: TableStream, position: str) -> int:
    """Count the rows with an event since `position` that have an older value, or lack a value.

    Such a value is correct if the lake missed no change of the table. If it did, the value may
    have changed meanwhile.
    """
    table, below = stream.table, history_of(position)
    rows = stream.lake.read(table.changes).where(F.col(naming.OP) != "t")
    is_recent = f"{history_part(naming.POSITION)} >= {SPARK.text(below)} AND {naming.OP} <> 'd'"
    if rows.where(f"{is_recent} AND {naming.UNAVAILABLE} IS NOT NULL").isEmpty():
        return 0
    newest_values = [_newest_value(name).alias(f"cdc__at_{name}") for name in table.toastable]
    recent = newest_of_keys(rows, table, *newest_values).where(is_recent)
    is_older = " OR ".join(
        f"{history_part(value)} < {SPARK.text(below)}"
        for value in (f"coalesce({SPARK.name(f'cdc__at_{name}')}, '')" for name in table.toastable)
    )
    return recent.where(is_older).count()


def _deletes(log: DataFrame, known: DataFrame, table: Table, position: str) -> DataFrame:
    """Return a synthetic delete for each stale row of `known`, with the columns of `log`."""
    keys = [F.col(SPARK.name(name)) for name in table.key]
    stale = _stale_keys(known, table, history_of(position)).select(*keys)
    return log.limit(0).unionByName(
        stale.withColumns(delete_columns(table, position)), allowMissingColumns=True
    )


def _stale_keys(log: DataFrame, table: Table, below: str) -> DataFrame:
    """Return the live keys whose newest event is below this position."""
    history = history_part(naming.POSITION)
    truncates = log.where(F.col(naming.OP) == "t")
    floor = truncates.agg(F.expr(f"max({history}) AS floor")).collect()[0]["floor"] or ""
    return (
        newest_of_keys(log.where(F.col(naming.OP) != "t"), table)
        .where(f"{history} < {SPARK.text(below)} AND {history} >= {SPARK.text(floor)}")
        .where(F.col(naming.OP) != "d")
    )


def _newest_value(column: str) -> Expression:
    """Return the position of the newest event that has a value of the column."""
    is_listed = SPARK.contains(naming.UNAVAILABLE, column)
    brought = f"{naming.OP} <> 'd' AND ({naming.UNAVAILABLE} IS NULL OR NOT {is_listed})"
    return F.expr(f"max(IF({brought}, {naming.POSITION}, NULL))")


def delete_columns(table: Table, position: str) -> dict[str, Expression]:
    """Return the changelog's columns outside the key of a synthetic delete at this position."""
    at = Position.parse(position)
    # The delete has no values: values that a later event lacks as well stay as they were.
    is_whole = table.delivery == "poll" and table.deletes == "hard"  # so is every later event
    unsent = table.may_stay_unsent if is_whole else table.toastable
    carried = [F.lit(name) for name in unsent]
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
