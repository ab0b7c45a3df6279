"""Columns whose type the source has widened without loss, before the pipeline file follows.

The plan is that of the file; these types are laid over it. A file that follows changes nothing
more, and a type that the lake cannot widen to is left to the schema drift's rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from cdclake.debezium.types import ColumnType, Conversion, parse_type, same_in_the_lake
from cdclake.iceberg.evolution import can_become
from cdclake.plan import Column, Plan, Table

WidenedTypes = Mapping[str, Mapping[str, str]]  # by lake table and lake column


def is_widening(declared: ColumnType, actual: ColumnType) -> bool:
    """Return True if the lake can widen the column to the source's type, and has to."""
    return can_become(declared, actual) and not same_in_the_lake(declared, actual)


def with_widened(plan: Plan, widened: WidenedTypes) -> Plan:
    """Return the plan with the widened types of its columns."""
    if plan.widened_columns != "widen" or not widened:
        return plan
    tables = tuple(_widen(table, widened.get(table.name, {})) for table in plan.tables)
    return replace(plan, tables=tables)


def advise_rebuild(plan: Plan, table: Table, columns: Iterable[str]) -> str:
    """Return how the state gets values that one of these columns was too narrow for, or "".

    Refused values are replayed; those that `not_representable: null` replaced are not.
    """
    became_null = (
        column.name in columns
        and column.column_type.conversion is Conversion.DECIMAL
        and not plan.refuses_unheld(table, column)
        for column in table.columns
    )
    if not any(became_null):
        return ""
    return (
        f"run `cdclake job rebuild_tables --table {table.name}` after the next batch: earlier"
        f" values beyond the old type are NULL in {table.name} (`not_representable: null`)"
    )


def still_widened(plan: Plan, stored: Iterable[Table]) -> Plan:
    """Return a file's plan with the wider types of the tables that the lake has."""
    types = {t.name: {c.name: c.type for c in t.columns} for t in stored}
    return with_widened(plan, types)


def widened_tables(before: Plan | None, after: Plan) -> list[str]:
    """Return the tables of both plans with a column that is widened between them."""
    known = {table.name: table for table in before.tables} if before else {}
    return [t.name for t in after.tables if t.name in known and _is_widened(known[t.name], t)]


def _is_widened(before: Table, after: Table) -> bool:
    old = {column.name: column.column_type for column in before.columns}
    return any(is_widening(old.get(c.name, c.column_type), c.column_type) for c in after.columns)


def _widen(table: Table, types: Mapping[str, str]) -> Table:
    columns = tuple(_widen_column(column, types.get(column.name)) for column in table.columns)
    return replace(table, columns=columns)


def _widen_column(column: Column, wider: str | None) -> Column:
    kind = None if wider is None else parse_type(wider)
    if kind is None or not is_widening(column.column_type, kind):
        return column
    return replace(column, type=str(kind))
