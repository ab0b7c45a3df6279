"""The lake's side of a comparison, read with DuckDB."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import duckdb

from cdclake.verify.compare import Row
from cdclake.verify.statements import Comparable

_FETCH_ROWS = 2000
_LOAD_ROWS = 10_000
_PLACES = "temp.main.cdclake_verify_hashes"


def ordered_rows(session: duckdb.DuckDBPyConnection, statement: str) -> Iterator[Row]:
    """Yield the rows of a statement, a few in memory at a time."""
    result = session.execute(statement)
    while rows := result.fetchmany(_FETCH_ROWS):
        yield from map(Row.of, rows)


def rows_of(
    session: duckdb.DuckDBPyConnection, comparable: Comparable, hashes: Iterable[int]
) -> Iterator[Row]:
    """Yield the rows whose keys have these hashes, in one pass over the table."""
    session.execute(f"CREATE OR REPLACE TEMP TABLE {_PLACES.rpartition('.')[2]} (h BIGINT)")
    batch: list[int] = []
    for hash_ in hashes:
        batch.append(hash_)
        if len(batch) == _LOAD_ROWS:
            session.execute(f"INSERT INTO {_PLACES} SELECT unnest(?)", [batch])
            batch = []
    session.execute(f"INSERT INTO {_PLACES} SELECT unnest(?::BIGINT[])", [batch])
    return ordered_rows(session, comparable.rows_of_hashes(f"SELECT h FROM {_PLACES}"))
