"""Events of a changelog grouped and joined by their keys, in Spark.

All texts of one value are one key (`cdclake.iceberg.key_values`).
"""

from __future__ import annotations

from typing import Literal

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.key_values import has_spellings, key_values
from cdclake.plan import Table

_VALUE = "cdc__key_value_{}"


def compared_keys(table: Table) -> list[Expression]:
    """Return the key's columns as equal keys have them, for rows in the changelog's schema."""
    return [F.expr(value) for value in key_values(table, SPARK)]


def newest_of_keys(rows: DataFrame, table: Table, *more: Expression) -> DataFrame:
    """Return each key with position and operation of its newest event, and aggregates `more`.

    Of several texts of the key it has that of the newest event.
    """
    grouped: list[Expression] = []
    texts: list[Expression] = []
    values: list[str] = []
    for column, value in zip(table.key_columns, compared_keys(table), strict=True):
        if has_spellings(column.column_type):
            values.append(_VALUE.format(len(values)))
            grouped.append(value.alias(values[-1]))
            texts.append(F.max_by(SPARK.name(column.name), naming.POSITION).alias(column.name))
        else:
            grouped.append(value)
    newest = rows.groupBy(*grouped).agg(
        *texts,
        F.expr(f"max({naming.POSITION}) AS {naming.POSITION}"),
        F.expr(f"max_by({naming.OP}, {naming.POSITION}) AS {naming.OP}"),
        *more,
    )
    return newest.drop(*values)


def matching_keys(
    rows: DataFrame, keys: DataFrame, table: Table, how: Literal["left_semi", "left_anti"]
) -> DataFrame:
    """Select the rows that have a key of the events `keys`, or with `left_anti` those without."""
    names = [_VALUE.format(index) for index in range(len(table.key))]
    values = compared_keys(table)
    sought = keys.select(
        *(value.alias(name) for value, name in zip(values, names, strict=True))
    ).distinct()
    same = [value == F.col(name) for value, name in zip(values, names, strict=True)]
    return rows.join(sought, same, how)
