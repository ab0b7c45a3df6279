"""Selection of the events that a state's rows come from, without their values."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.latest_row import Carried, begins_row, is_available
from cdclake.jobs.iceberg.events_of_keys import compared_keys
from cdclake.plan import Table

_POSITIONS = "cdc__positions"


def newest_events(changes: DataFrame, table: Table, carried: Carried) -> DataFrame:
    """Select each key's newest event, the one that begins its row, and its newest values' events.

    The fold of these events with the columns `carried` is that of all. `changes` contain no
    truncates, and lack no value of another column. A key has few of these events,
    however often its row was updated. Only positions are compared, so that no value is aggregated.
    """
    conditions = [
        "true",
        begins_row(table),
        *(is_available(table, column, SPARK) for column in carried),
    ]
    at = naming.POSITION
    newest = (F.expr(f"max({at}) FILTER (WHERE {condition})") for condition in conditions)
    of_keys = changes.groupBy(*compared_keys(table)).agg(F.array(*newest).alias(_POSITIONS))
    positions = of_keys.select(F.explode(_POSITIONS).alias(at))
    return changes.join(positions, at, "left_semi")
