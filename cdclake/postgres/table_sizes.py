"""Rows and bytes of tables by the source's statistics, without reading a row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cdclake.plan import Table
from cdclake.postgres.session import Session

# Rows are unknown for a table with data that was never analyzed. Partitions count, not their root.
_SIZES = """
SELECT n.nspname || '.' || c.relname,
       CASE WHEN bool_or(l.reltuples < 0 AND pg_relation_size(l.oid) > 0) THEN NULL
            ELSE sum(greatest(l.reltuples, 0))::bigint END,
       sum(pg_table_size(l.oid))::bigint
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN LATERAL (SELECT c.oid UNION SELECT relid FROM pg_partition_tree(c.oid)) p (oid)
JOIN pg_class l ON l.oid = p.oid
WHERE n.nspname || '.' || c.relname = ANY(%s) AND l.relkind IN ('r', 'm')
GROUP BY 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSize:
    """Size of a table in the source; `rows` is the planner's estimate, None if it has none."""

    rows: int | None
    bytes: int


def read_sizes(connection: Session, tables: Iterable[Table]) -> dict[str, TableSize]:
    """Return the sizes by `schema.table`; without those of views, queries and missing tables."""
    names = [table.source for table in tables]
    rows = connection.execute(_SIZES, (names,)).fetchall()
    return {name: TableSize(rows=count, bytes=size) for name, count, size in rows}
