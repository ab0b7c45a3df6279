"""Relations that a query of the lake may name, with their columns."""

from __future__ import annotations

from collections.abc import Mapping

from cdclake import naming
from cdclake.iceberg.schemas import (
    appended_schemas,
    changes_schema,
    quarantine_schema,
    state_schema,
)
from cdclake.iceberg.views import HISTORY_FACTS
from cdclake.plan import Plan


def relation_columns(plan: Plan) -> Mapping[str, tuple[str, ...]]:
    """Return the columns of each relation by its name; none of derived tables, which queries give.

    Views come first, as queries seldom read the tables below them.
    """
    views: dict[str, tuple[str, ...]] = {}
    schemas = [*appended_schemas(plan), quarantine_schema(plan)]
    for table in plan.all_tables:
        declared = tuple(column.name for column in table.columns)
        views[naming.current_name(table.name)] = declared
        views[naming.history_name(table.name)] = (*declared, *HISTORY_FACTS)
        schemas += [state_schema(table, plan), changes_schema(table, plan)]
    stored = {schema.name: tuple(name for name, _ in schema.columns) for schema in schemas}
    return {**views, **stored, **{table.name: () for table in plan.derived}}
