"""Refused events, with their bytes and the reason, so that none is lost."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.stream.decode import REFUSAL
from cdclake.plan import Table

_PLACE = ("partition", "offset")  # of a record in its topic


def refusals(events: DataFrame, record: Mapping[str, str]) -> DataFrame:
    """The refused ones of decoded events: their place, `reason`, and the columns of `record`.

    `record` names the columns of `events` that stand for a record's.
    """
    names = {"partition": naming.PARTITION, "offset": naming.OFFSET, "reason": REFUSAL, **record}
    columns = [F.col(column).alias(name) for name, column in names.items()]
    return events.where(F.col(REFUSAL).isNotNull()).select(*columns)


def refused_records(records: DataFrame, events: DataFrame) -> DataFrame:
    """The records behind the refused ones of the decoded `events`, with their `reason`."""
    # Without the hint Spark sorts all of the batch's records: it can't know how few are refused.
    return records.join(F.broadcast(refusals(events, {})), [*_PLACE])


def quarantine(refused: DataFrame, lake: LakeTables, table: Table) -> int:
    """Append the refused events that are not there yet; how many were new.

    `refused` are records of the table's topic (`partition`, `offset`, `key`, `value`, `headers`),
    each with its `reason`. Doing it again finds them by their place and appends nothing.
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
            return count


def _places_in_quarantine(lake: LakeTables, table: Table, refused: DataFrame) -> DataFrame:
    """Of the table's, those between the refused ones' offsets: other files are not opened."""
    offsets = refused.agg(F.min("offset"), F.max("offset")).collect()[0]
    kept = lake.read(naming.QUARANTINE).where(F.col("topic") == table.topic)
    return kept.where(F.col("offset").between(*offsets)).select(*_PLACE)
