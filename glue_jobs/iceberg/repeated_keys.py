"""Search for rows that have the same key: one would replace the other."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake.iceberg.dialect import SPARK

_ROWS = "cdc__rows"  # a column of the key may be named `count`


def rows_of_a_repeated_key(rows: DataFrame, key: Sequence[str]) -> int | None:
    """Return how many rows one key has that is repeated; None if each row has its own."""
    counted = rows.groupBy(*map(SPARK.name, key)).agg(F.count("*").alias(_ROWS))
    found = counted.where(f"{_ROWS} > 1").first()
    return None if found is None else int(found[_ROWS])
