"""Search for rows that have the same key: one would replace the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake.iceberg.dialect import SPARK

_ROWS = "cdc__rows"  # a column of the key may be named `count`


class RepeatedKey(NamedTuple):
    """Key with several rows."""

    values: Mapping[str, Any]
    rows: int


def repeated_key(rows: DataFrame, key: Sequence[str]) -> RepeatedKey | None:
    """Return one key that several rows have; None if each row has its own."""
    counted = rows.groupBy(*map(SPARK.name, key)).agg(F.count("*").alias(_ROWS))
    found = counted.where(f"{_ROWS} > 1").first()
    if found is None:
        return None
    return RepeatedKey({name: found[name] for name in key}, found[_ROWS])
