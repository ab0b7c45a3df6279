"""Quarantine of refused events, with their bytes and the reason."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.fail_points import reach
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.stream.changelog_columns import REFUSAL
from cdclake.plan import Table

_PLACE = ("partition", "offset")  # of a record in its topic


def refusals(events: DataFrame, record: Mapping[str, str]) -> DataFrame:
    """Select the refused events: their place, `reason`, and the columns of `record`.

    `record` maps columns of a Kafka record to columns of `events`.
    """
    names = {"partition": naming.PARTITION, "offset": naming.OFFSET, "reason": REFUSAL, **record}
    columns = [F.col(column).alias(name) for name, column in names.items()]
    return events.where(F.col(REFUSAL).isNotNull()).select(*columns)


def refused_records(records: DataFrame, events: DataFrame) -> DataFrame:
    """Select the records of the refused `events`, with their `reason`."""
    # Without the hint Spark would sort all records of the batch, although few are refused.
    return records.join(F.broadcast(refusals(events, {})), [*_PLACE])


def quarantine(refused: DataFrame, lake: LakeTables, table: Table) -> int:
    """Append the refused events that the quarantine lacks; return their number.

    `refused` are records of the table's topic (`partition`, `offset`, `key`, `value`, `headers`),
    each with its `reason`. Idempotent: known events are found by their place.
    """
    with persisted(refused):
        known = _places_in_quarantine(lake, table, refused)
        fresh = refused.join(known, [*_PLACE], "left_anti").select(
            F.lit(table.topic).alias("topic"),
            *(F.col(name) for name in (*_PLACE, "key", "value", "headers", "reason")),
            F.lit(table.name).alias("table"),
            F.current_timestamp().alias("quarantined_at"),
        )
        with persisted(fresh):
            count = fresh.count()
            if count:
                fresh.writeTo(lake.qualified(naming.QUARANTINE)).append()
                reach("after_quarantine_commit")
            return count


def _places_in_quarantine(lake: LakeTables, table: Table, refused: DataFrame) -> DataFrame:
    """Read the table's known places in the range of the refused offsets only."""
    offsets = refused.agg(F.min("offset"), F.max("offset")).collect()[0]
    kept = lake.read(naming.QUARANTINE).where(F.col("topic") == table.topic)
    return kept.where(F.col("offset").between(*offsets)).select(*_PLACE)
