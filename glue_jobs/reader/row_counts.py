"""Number of rows of a relation in the reader's session."""

from __future__ import annotations

import duckdb

from cdclake.iceberg.dialect import DUCKDB


def row_count(session: duckdb.DuckDBPyConnection, relation: str) -> int:
    """Return the relation's number of rows."""
    row = session.execute(f"SELECT count(*) FROM {DUCKDB.name(relation)}").fetchone()
    assert row is not None  # an aggregate has a row
    return int(row[0])
