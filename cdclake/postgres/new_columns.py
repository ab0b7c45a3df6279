"""Columns of the source that the plan neither declares nor excludes."""

from __future__ import annotations

from collections.abc import Mapping

from cdclake import naming
from cdclake.plan import Plan, Table
from cdclake.postgres.catalog import SourceTable, TableId
from cdclake.postgres.file_lines import scalar
from cdclake.postgres.published import undeclared_columns


def find_new_columns(
    plan: Plan, actual: Mapping[TableId, SourceTable]
) -> dict[str, dict[str, str | None]]:
    """Return the types of the undeclared columns by lake table and source column.

    None is the type of a column that cannot be declared, only excluded.
    """
    found = {
        table.name: types_to_declare(table, source)
        for table in plan.tables
        if (source := actual.get((table.schema, table.table))) is not None
    }
    return {name: columns for name, columns in found.items() if columns}


def types_to_declare(table: Table, actual: SourceTable) -> dict[str, str | None]:
    """Return each undeclared column with its type, or None if it can only be excluded.

    That is a column whose type is not supported, whose name in the lake is reserved or taken, or
    whose NOT NULL is not validated.
    """
    taken = {column.name for column in table.columns}
    types: dict[str, str | None] = {}
    for name in undeclared_columns(table, actual):
        column, lake_name = actual.by_name[name], naming.lake_name(name)
        is_free = lake_name not in taken and not naming.is_reserved_column(lake_name)
        can_flow = column.type is not None and not column.unvalidated
        types[name] = str(column.type) if can_flow and is_free else None
        taken.add(lake_name)
    return types


def lines_to_write(column: str, kind: str | None) -> str:
    """Return the line that declares the column, or the one that excludes it, as a remedy.

    >>> lines_to_write("note", "text")
    'write `note: text`, or `note: {exclude: true}`'
    """
    exclude = f"`{scalar(column)}: {{exclude: true}}`"
    return f"write {exclude}" if kind is None else f"write `{scalar(column)}: {kind}`, or {exclude}"


def stop_reason(table: Table, columns: Mapping[str, str | None]) -> str:
    """Return why a table with `new_columns: stop` stops, and what lets it continue."""
    named = ", ".join(map(repr, columns))
    lines = "; ".join(lines_to_write(column, kind) for column, kind in columns.items())
    return (
        f"{table.source} has undeclared columns in the source ({named}), and `new_columns: stop`"
        f" stops it; {lines}, below its `columns:` (`cdclake init --update FILE` declares them),"
        " and apply the file"
    )
