"""Check of the types that Debezium does not find, because another type has the same name.

Debezium 3.7 looks a column's type up by name: in the schema of the table, then in all schemas.
Every relation is a type too, so it may find a table, and writes NULL instead of the value.
"""

from __future__ import annotations

from cdclake.plan import Column, Table
from cdclake.postgres.catalog import SourceTable
from cdclake.postgres.published import name_now
from cdclake.postgres.refusal import Refusal


def check_type_lookup(column: Column, declared: Table, actual: SourceTable) -> Refusal | None:
    """Refuse a streamed column for whose type Debezium may take another one."""
    present = name_now(column, actual.by_name)
    if present is None or not (found := actual.by_name[present]).mistaken_for:
        return None
    others = ", ".join(found.mistaken_for)
    exclude = f", or write `{column.source}: {{exclude: true}}`"
    return Refusal(
        actual.source,
        f"column {present!r}: Debezium looks its type {found.shown} up by name and may take"
        f" {others} for it, so that values would be missing in the lake",
        "give one of them another name in the source (a table is a type too)"
        + ("" if column.name in declared.key else exclude),
    )
