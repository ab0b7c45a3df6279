"""The row and its table in the source."""

from __future__ import annotations

from cdclake.jobs.runtime.source import Connection
from cdclake.jobs.runtime.source_key import has_row
from cdclake.plan import Plan
from cdclake.trace.row_key import RowKey
from cdclake.trace.trace_facts import SourceFacts

_MEMBERS = """
SELECT rowfilter FROM pg_publication_tables
WHERE pubname = %s AND schemaname = %s AND tablename = %s
"""
_BOUND = "SET statement_timeout = '10s'"  # a migration may hold a lock on the table


def source_facts(connection: Connection, plan: Plan, key: RowKey) -> SourceFacts:
    """Return the facts of the source: the row itself, and its table in the publication."""
    table = key.table
    connection.execute(_BOUND)
    exists = has_row(connection, key)
    if table.delivery == "poll":
        return SourceFacts(has_row=exists)
    members = connection.execute(
        _MEMBERS, (plan.source_object, table.schema, table.table)
    ).fetchall()
    row_filter = members[0][0] if members else None
    is_hidden = row_filter is not None and exists and not has_row(connection, key, row_filter)
    return SourceFacts(
        has_row=exists,
        is_published=bool(members),
        row_filter=row_filter if is_hidden else None,
    )
