"""Reasons to refuse rows that Spark has made, of bulk loads and replays, as Spark expressions."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium import refusals
from cdclake.debezium.types import Conversion
from cdclake.iceberg.conversions import is_representable, to_state
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.limit_condition import broken_limit
from cdclake.plan import Column, Plan, Table

Reason = tuple[Expression, str | Expression]  # condition and text


def first_reason(reasons: Sequence[Reason]) -> Expression:
    """Return the first reason whose condition holds; NULL if there is none."""
    return F.coalesce(*(F.when(condition, _text(reason)) for condition, reason in reasons))


def _text(reason: str | Expression) -> Expression:
    return F.lit(reason) if isinstance(reason, str) else reason


def broken_rules(table: Table) -> list[Reason]:
    """Return the reasons to withhold rows with a row (no delete), by the rules of the table."""
    columns = {column.name: column for column in table.columns}
    found: list[Reason] = []
    for rule in table.checks:
        column = None if rule.limit is None else columns.get(rule.limit.column)
        if rule.limit is None or column is None:
            continue
        name, kind = SPARK.name(column.name), column.column_type
        condition = broken_limit(rule.limit, to_state(name, kind, SPARK), kind.state)
        text = f"left(CAST({name} AS string), {refusals.MAX_VALUE_CHARACTERS})"
        value = F.coalesce(F.expr(text), F.lit("NULL"))
        reason = F.concat(F.lit(refusals.broken_rule(rule.name, column, "")), value)
        found.append((F.expr(condition), reason))
    return found


def unrepresentable(table: Table, plan: Plan) -> list[Reason]:
    """Return the reasons to refuse values that the state cannot hold, as the policy requires.

    With hard deletes the last values of a deleted row are only stored in the changelog, which can
    hold any: refusing the delete would keep the row alive.
    """
    forgotten = F.col(naming.OP) == "d" if table.deletes == "hard" else F.lit(False)
    return [
        (
            (F.lit(column.name in table.key) | ~forgotten) & _is_not_representable(column),
            refusals.not_representable(column, table),
        )
        for column in table.columns
        if column.column_type.conversion is not Conversion.NONE
        and plan.refuses_unheld(table, column)
    ]


def _is_not_representable(column: Column) -> Expression:
    value = SPARK.name(column.name)
    held = is_representable(value, column.column_type, SPARK)
    return F.expr(f"{value} IS NOT NULL AND NOT {held}")
