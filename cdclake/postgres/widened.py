"""Columns that are wider in the source than in the plan."""

from __future__ import annotations

from collections.abc import Mapping

from cdclake.iceberg.widening import is_widening
from cdclake.plan import Plan, Table
from cdclake.postgres.catalog import SourceTable, TableId
from cdclake.postgres.published import name_now


def find_widened(plan: Plan, actual: Mapping[TableId, SourceTable]) -> dict[str, dict[str, str]]:
    """Return the source's wider types by lake table and lake column, for `with_widened`."""
    if plan.widened_columns != "widen":
        return {}
    found = {
        table.name: _widened_in(table, source)
        for table in plan.tables
        if (source := actual.get((table.schema, table.table))) is not None
    }
    return {name: columns for name, columns in found.items() if columns}


def _widened_in(table: Table, actual: SourceTable) -> dict[str, str]:
    widened = {}
    for column in table.columns:
        present = name_now(column, actual.by_name)
        kind = None if present is None else actual.by_name[present].type
        if kind is not None and is_widening(column.column_type, kind):
            widened[column.name] = str(kind)
    return widened
