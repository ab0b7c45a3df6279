"""Refused events, with their bytes and the reason, so that none is lost."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.plan import Table
from glue_jobs.ingest.decode import RECORD, REFUSAL
from glue_jobs.runtime.tables import LakeTables


def quarantine(decoded: DataFrame, lake: LakeTables, table: Table) -> int:
    """Append the batch's refused events that are not there yet; how many were new.

    A replayed batch finds its events by (topic, partition, offset) and appends nothing.
    """
    refused = decoded.where(F.col(REFUSAL).isNotNull()).select(
        F.lit(table.topic).alias("topic"),
        F.col(naming.PARTITION).alias("partition"),
        F.col(naming.OFFSET).alias("offset"),
        *(F.col(column).alias(name) for name, column in RECORD.items()),
        F.col(REFUSAL).alias("reason"),
        F.lit(table.name).alias("table"),
        F.current_timestamp().alias("quarantined_at"),
    )
    known = lake.read(naming.QUARANTINE).where(F.col("topic") == table.topic)
    fresh = refused.join(
        known.select("topic", "partition", "offset"), ["topic", "partition", "offset"], "left_anti"
    ).persist()
    try:
        count = fresh.count()
        if count:
            fresh.writeTo(lake.qualified(naming.QUARANTINE)).append()
        return count
    finally:
        fresh.unpersist()
