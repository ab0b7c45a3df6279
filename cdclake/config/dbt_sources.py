"""The lake's tables as sources of a dbt project.

Source of the keys: dbt's reference of source properties, in the form that dbt 1.9 introduced
(`data_tests`).
"""

from __future__ import annotations

from io import StringIO
from typing import Any

from ruamel.yaml import YAML

from cdclake import naming
from cdclake.iceberg.reader_facts import VIEW_READERS
from cdclake.plan import Column, Plan, Table


def dbt_sources(plan: Plan, database: str, warn_after_hours: int) -> dict[str, Any]:
    """Return the content of a `sources.yml`: each table's rows and its changelog.

    Without a reader that stores views there is no `<t>_current` to name.
    `database` is dbt's name for the catalog. A key of one column is tested for unique values; dbt
    has no test of its own for several columns, which are tested for NULL alone. Freshness is that
    of the changelog: after `warn_after_hours` without a change dbt warns.
    """
    tables = [
        each
        for table in plan.all_tables
        for each in (*_rows(table, plan), _changelog(table, warn_after_hours))
    ]
    return {
        "version": 2,
        "sources": [
            {
                "name": plan.lake_database,
                "description": f"Tables that cdclake streams from {plan.source_database}.",
                "database": database,
                "schema": plan.lake_database,
                "tables": tables,
            }
        ],
    }


def as_yaml(content: dict[str, Any]) -> str:
    """Return the content as YAML."""
    text = StringIO()
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 4096  # one line per value
    yaml.dump(content, text)
    return text.getvalue()


def _rows(table: Table, plan: Plan) -> list[dict[str, Any]]:
    if set(VIEW_READERS).isdisjoint(plan.readers):
        return []
    rows = {
        "name": naming.current_name(table.name),
        "description": f"The rows of {table.source}, as the source has them.",
        "columns": [_column(table, column) for column in table.columns],
    }
    return [rows]


def _column(table: Table, column: Column) -> dict[str, Any]:
    described = {"name": column.name, "description": column.type}
    if column.name not in table.key:
        return described
    is_whole = len(table.key) == 1
    return described | {"data_tests": ["not_null", "unique"] if is_whole else ["not_null"]}


def _changelog(table: Table, warn_after_hours: int) -> dict[str, Any]:
    operations = {"accepted_values": {"values": list(naming.OPERATIONS)}}
    return {
        "name": table.changes,
        "description": f"Every change of {table.source}, one row each.",
        "loaded_at_field": naming.INGESTED_AT,
        "freshness": {"warn_after": {"count": warn_after_hours, "period": "hour"}},
        "columns": [
            {
                "name": naming.OP,
                "description": ", ".join(f"{op} {n}" for op, n in naming.OPERATIONS.items()),
                "data_tests": ["not_null", operations],
            },
            {
                "name": naming.POSITION,
                "description": "place in the source's order of changes",
                "data_tests": ["not_null"],
            },
        ],
    }
