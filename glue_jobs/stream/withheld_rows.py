"""Rows that rules withhold (`on: quarantine`), from their events in the quarantine."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.iceberg.limit_condition import is_withheld
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.stream.changelog_columns import FINDINGS, REFUSAL
from cdclake.jobs.stream.event_decoder import EventDecoder
from cdclake.jobs.stream.kafka_range import RECORD_COLUMNS
from cdclake.plan import Plan, Table


def with_withheld(log: DataFrame, lake: LakeTables, table: Table, plan: Plan) -> DataFrame:
    """Return the events of a changelog, and those of the table that a rule withholds.

    A key whose newest event is withheld is in the source, whatever the changelog has of it.
    """
    kept = lake.read(naming.QUARANTINE).where(is_withheld("reason"))
    held = kept.where((F.col("topic") == table.topic) & (F.col("table") == table.name))
    if held.isEmpty():
        return log
    rows = EventDecoder(table, plan).decode(held.select(*RECORD_COLUMNS))
    readable = rows.where(f"{REFUSAL} IS NULL OR {is_withheld(REFUSAL)}")
    return log.unionByName(readable.drop(*FINDINGS), allowMissingColumns=True)
