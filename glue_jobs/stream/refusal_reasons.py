"""Reasons to refuse rows that Spark has made, of bulk loads and replays, as Spark expressions."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.debezium.types import Conversion
from cdclake.iceberg.conversions import is_representable
from cdclake.iceberg.dialect import SPARK
from cdclake.plan import Column, Plan, Table

Reason = tuple[Expression, str]  # condition and text


def first_reason(reasons: Sequence[Reason]) -> Expression:
    """Return the first reason whose condition holds; NULL if there is none."""
    return F.coalesce(*(F.when(condition, F.lit(reason)) for condition, reason in reasons))


def unrepresentable(table: Table, plan: Plan) -> list[Reason]:
    """Return the reasons to refuse values that the state cannot hold, as the policy requires.

    With hard deletes the last values of a deleted row are only stored in the changelog, which can
    hold any: refusing the delete would keep the row alive.
    """
    if plan.not_representable != "quarantine":
        return []
    forgotten = F.col(naming.OP) == "d" if table.deletes == "hard" else F.lit(False)
    return [
        (
            (F.lit(column.name in table.key) | ~forgotten) & _is_not_representable(column),
            refusals.not_representable(column),
        )
        for column in table.columns
        if column.column_type.conversion is not Conversion.NONE
    ]


def _is_not_representable(column: Column) -> Expression:
    value = SPARK.name(column.name)
    held = is_representable(value, column.column_type, SPARK)
    return F.expr(f"{value} IS NOT NULL AND NOT {held}")
