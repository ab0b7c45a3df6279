"""The row and its table in the source."""

from __future__ import annotations

from collections.abc import Sequence

from cdclake.jobs.runtime.source import Connection
from cdclake.local.trace.row_key import RowKey
from cdclake.plan import Plan
from cdclake.postgres import poll_queries
from cdclake.postgres.quoting import identifier
from cdclake.trace.trace_facts import SourceFacts

_MEMBERS = """
SELECT rowfilter FROM pg_publication_tables
WHERE pubname = %s AND schemaname = %s AND tablename = %s
"""


def source_facts(connection: Connection, plan: Plan, key: RowKey) -> SourceFacts:
    """Return whether the source has the row, and whether the publication contains its table."""
    table = key.table
    has_row = _has_row(connection, key, key.words)
    if table.delivery == "poll":
        return SourceFacts(has_row=has_row)
    members = connection.execute(
        _MEMBERS, (plan.source_object, table.schema, table.table)
    ).fetchall()
    row_filter = members[0][0] if members else None
    return SourceFacts(has_row=has_row, is_published=bool(members), row_filter=row_filter)


def _has_row(connection: Connection, key: RowKey, words: Sequence[str]) -> bool:
    columns = " AND ".join(f"{identifier(c.source)} = %s" for c in key.table.key_columns)
    query = f"SELECT 1 FROM {poll_queries.relation(key.table)} WHERE {columns} LIMIT 1"
    return connection.execute(query, words).fetchone() is not None
