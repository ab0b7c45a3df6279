"""Candidate keys for tables that have none, and the query that tests them.

Such a key is a guess that the current rows do not contradict; it is only ever proposed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from cdclake.postgres.catalog import SourceColumn, SourceTable
from cdclake.postgres.quoting import identifier, identifiers, qualified

Key = tuple[str, ...]

_COMPARABLE = frozenset(
    {
        "smallint", "integer", "bigint", "oid", "uuid", "text", "varchar", "char", "name",
        "citext", "enum", "date", "timestamp", "timestamptz",
    }
)  # fmt: skip
_MAX_SINGLES = 12
_MAX_PAIRED = 6


def candidate_keys(table: SourceTable, flowing: frozenset[str]) -> list[Key]:
    """Return the candidates, likeliest first: from indexes, from partitions, then by columns."""
    indexed = [index.columns for index in table.indexes]
    parts = [leaf.primary_key.columns for leaf in table.leaves if leaf.primary_key is not None]
    fitting = [c for c in table.columns if c.name in flowing and _comparable(c)]
    fitting.sort(key=lambda column: _likelihood(table.table, column))
    singles = [(column.name,) for column in fitting[:_MAX_SINGLES]]
    pairs = list(combinations([column.name for column in fitting[:_MAX_PAIRED]], 2))
    found = dict.fromkeys([*parts, *indexed, *singles, *pairs])
    return [key for key in found if key and flowing.issuperset(key) and _all_known(table, key)]


def uniqueness_query(table: SourceTable, candidates: Sequence[Key]) -> str:
    """Return a query for one row: the number of rows, and of distinct keys per candidate."""
    counts = ["count(*)"]
    for key in candidates:
        whole = " AND ".join(f"{identifier(name)} IS NOT NULL" for name in key)
        counts.append(f"count(DISTINCT ({identifiers(key)})) FILTER (WHERE {whole})")
    return f"SELECT {', '.join(counts)} FROM {qualified(table.schema, table.table)}"


def first_unique(candidates: Sequence[Key], counts: Sequence[int]) -> Key | None:
    """Return the first candidate that no row repeats; for an empty table, the likeliest.

    `counts` is the row of `uniqueness_query`.
    """
    rows, *distinct = counts
    unique = (key for key, count in zip(candidates, distinct, strict=True) if count == rows)
    return next(unique, None)


def _comparable(column: SourceColumn) -> bool:
    known = column.type
    return known is not None and not known.array and known.base in _COMPARABLE


def _all_known(table: SourceTable, key: Key) -> bool:
    return all(_comparable(table.by_name[name]) for name in key)


def _likelihood(table: str, column: SourceColumn) -> tuple[bool, bool, bool, bool]:
    """Return a sort key: columns that may be NULL last, numbered ones first, by name, by type."""
    name = column.name.lower()
    named = name in ("id", "uuid", f"{table.lower()}_id", f"{table.lower()}id")
    base = column.type.base if column.type is not None else ""
    is_time = base in ("date", "timestamp", "timestamptz", "enum")
    return column.nullable, not column.numbered, not named, is_time
