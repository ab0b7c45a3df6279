"""Search for rows that repeat a key which no index makes unique."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cdclake.plan import Table
from cdclake.postgres.quoting import identifiers, qualified
from cdclake.postgres.refusal import Refusal


def repeated_key(table: Table) -> str:
    """Return a query for one key that several rows have, and their number; no row if none has."""
    key = identifiers(column.source for column in table.key_columns)
    name = qualified(table.schema, table.table)
    return f"SELECT {key}, count(*) FROM {name} GROUP BY {key} HAVING count(*) > 1 LIMIT 1"


def refuse_repeated(table: Table, row: Sequence[Any]) -> Refusal:
    """Refuse the table whose rows repeat its key; `row` is that of `repeated_key`."""
    *values, count = row
    names = [column.source for column in table.key_columns]
    shown = ", ".join(f"{n}={value!r}" for n, value in zip(names, values, strict=True))
    return Refusal(
        table.source,
        f"{count} rows have the key {shown}, and the lake would keep only one of them",
        f"write a `key:` that no two rows share, or delete the others and run: ALTER TABLE"
        f" {qualified(table.schema, table.table)} ADD PRIMARY KEY ({identifiers(names)});",
    )
