"""Rows of events in the quarantine: they are in the source, though the changelog lacks them."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.position import history_part as history_of
from cdclake.debezium.refusals import OVERSIZED_RECORD
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.latest_row import history_part
from cdclake.iceberg.limit_condition import is_withheld
from cdclake.jobs.iceberg.events_of_keys import newest_of_keys
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.stream.changelog_columns import FINDINGS, REFUSAL
from cdclake.jobs.stream.event_decoder import EventDecoder
from cdclake.jobs.stream.kafka_range import RECORD_COLUMNS
from cdclake.plan import Plan, Table

# In SQL: the row of the quarantine is the marker of an event that was too large for Kafka.
IS_MARKER = f"startswith(reason, {SPARK.text(OVERSIZED_RECORD)})"


def with_withheld(log: DataFrame, lake: LakeTables, table: Table, plan: Plan) -> DataFrame:
    """Return the events of a changelog, and those of the table that a rule withholds.

    A key whose newest event is withheld is in the source, whatever the changelog has of it.
    """
    held = _quarantined(lake, table, is_withheld("reason"))
    if held.isEmpty():
        return log
    rows = EventDecoder(table, plan).decode(held.select(*RECORD_COLUMNS))
    readable = rows.where(f"{REFUSAL} IS NULL OR {is_withheld(REFUSAL)}")
    return log.unionByName(readable.drop(*FINDINGS), allowMissingColumns=True)


def with_quarantined(
    log: DataFrame, lake: LakeTables, table: Table, plan: Plan, position: str
) -> DataFrame:
    """Return the events of a changelog, the withheld ones, and the newest refused since `position`.

    Of a refused event only key, position and operation are certain. A key whose newest event is
    refused is in the source, unless that event deletes it; such deletes are left out.
    """
    known = with_withheld(log, lake, table, plan)
    refused = _refused(lake, table, plan)
    if refused is None:
        return known
    newest = newest_of_keys(refused, table)
    in_source = newest.where(f"{naming.OP} <> 'd' AND {naming.POSITION} IS NOT NULL")
    in_source = in_source.where(f"NOT ({_lacks_key(table)}) AND {_is_since(position)}")
    return known.unionByName(in_source, allowMissingColumns=True)


def count_unplaced(
    lake: LakeTables, table: Table, plan: Plan, position: str, offsets: Mapping[int, int]
) -> int:
    """Count the refused events since `position` whose key or position cannot be read.

    `offsets` are those of the topic's partitions at `position`, for events without a position.
    Without offsets such events are not counted, since they may be older.
    """
    refused = _refused(lake, table, plan)
    if refused is None:
        return 0
    later = [
        f"({naming.PARTITION} = {partition} AND {naming.OFFSET} >= {end})"
        for partition, end in offsets.items()
    ]
    is_later = " OR ".join(later) or "false"
    is_unplaced = f"{naming.POSITION} IS NULL OR ({_lacks_key(table)})"
    rows = refused.where(f"coalesce({_is_since(position)}, {is_later}) AND ({is_unplaced})")
    return rows.where(f"coalesce({naming.OP}, '') <> 't'").count()


def _refused(lake: LakeTables, table: Table, plan: Plan) -> DataFrame | None:
    """Decode the table's events that were refused for a fault; None if there are none."""
    fault = f"NOT {is_withheld('reason')} AND NOT coalesce({IS_MARKER}, false)"
    held = _quarantined(lake, table, fault)
    if held.isEmpty():
        return None
    decoder = EventDecoder(table, plan, accepts_refused=True)
    return decoder.decode(held.select(*RECORD_COLUMNS))


def _quarantined(lake: LakeTables, table: Table, condition: str) -> DataFrame:
    kept = lake.read(naming.QUARANTINE).where(condition)
    return kept.where((F.col("topic") == table.topic) & (F.col("table") == table.name))


def _is_since(position: str) -> str:
    return f"{history_part(naming.POSITION)} >= {SPARK.text(history_of(position))}"


def _lacks_key(table: Table) -> str:
    return " OR ".join(f"{SPARK.name(name)} IS NULL" for name in table.key)
