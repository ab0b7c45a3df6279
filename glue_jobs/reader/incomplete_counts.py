"""Number of rows that lack values in Athena's and Trino's `<t>_current` until they are applied."""

from __future__ import annotations

import duckdb

from cdclake import naming
from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.incomplete_rows import incomplete_rows
from cdclake.plan import Table


def incomplete_count(session: duckdb.DuckDBPyConnection, table: Table) -> int:
    """Return the table's number of such rows, in a session that has `tails`.

    It reads the tail of the changelog, and the state only if a row of the tail lacks a value.
    """
    if not table.may_be_unsent:
        return 0
    tail = DUCKDB.name(naming.tail_name(table.name))
    if not _count(session, table, changes=tail, state=None):
        return 0
    return _count(session, table, changes=tail, state=DUCKDB.name(table.name))


def _count(
    session: duckdb.DuckDBPyConnection, table: Table, *, changes: str, state: str | None
) -> int:
    listed = incomplete_rows(table, changes=changes, state=state, dialect=DUCKDB)
    keys = ", ".join(DUCKDB.name(key) for key in table.key)
    row = session.execute(f"SELECT count(DISTINCT ({keys})) FROM ({listed}) AS listed").fetchone()
    assert row is not None  # an aggregate has a row
    return int(row[0])
