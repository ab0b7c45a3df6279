"""Search for rows that repeat a key which no index makes unique."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cdclake.plan import Table
from cdclake.postgres.quoting import identifiers, qualified
from cdclake.postgres.refusal import Refusal


def repeated_key(table: Table) -> str:
    """Return a query for one key that several rows have, and their number; no row if none has."""
    return f"{_repeated_keys(table)} LIMIT 1"


def refuse_repeated(table: Table, row: Sequence[Any]) -> Refusal:
    """Refuse the table whose rows repeat its key; `row` is that of `repeated_key`.

    The values may be of persons, and the text gets into CloudFormation's events.
    """
    names = identifiers(column.source for column in table.key_columns)
    return Refusal(
        table.source,
        f"{row[-1]} rows have the same key ({names}), and the lake would keep only one of them",
        f"find them with: {_repeated_keys(table)}; then write a `key:` that no two rows share, or"
        f" delete the others and run: ALTER TABLE {qualified(table.schema, table.table)}"
        f" ADD PRIMARY KEY ({names});",
    )


def _repeated_keys(table: Table) -> str:
    key = identifiers(column.source for column in table.key_columns)
    name = qualified(table.schema, table.table)
    return f"SELECT {key}, count(*) FROM {name} GROUP BY {key} HAVING count(*) > 1"
