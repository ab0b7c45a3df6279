"""The lake's side of a comparison, read with DuckDB."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb

from cdclake.iceberg.dialect import DUCKDB, Dialect
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.verify.compared_rows import LakeRows, Sums, sums_of
from cdclake.naming import current_name
from cdclake.plan import Table
from cdclake.verify.compare import Row
from cdclake.verify.statements import Comparable

_FETCH_ROWS = 2000
_LOAD_ROWS = 10_000
_PLACES = "temp.main.cdclake_verify_hashes"


@dataclass(frozen=True, slots=True)
class DuckEngine:
    """DuckDB, as `cdclake sql` reads the lake."""

    reader: Reader
    name: str = "duckdb"
    dialect: Dialect = DUCKDB

    def relation(self, table: Table) -> str:
        """Return the qualified name of the table's `_current`."""
        database = self.reader.plan.lake_database
        return f"{DUCKDB.name(database)}.{DUCKDB.name(current_name(table.name))}"

    @contextmanager
    def open(self, tables: Collection[Table]) -> Iterator[LakeRows]:
        """Open a session with the `_current` of these tables."""
        with self.reader.open(tables) as session:
            yield DuckRows(session)


@dataclass(frozen=True, slots=True)
class DuckRows:
    """Rows of one session of DuckDB."""

    session: duckdb.DuckDBPyConnection

    def sums(self, comparable: Comparable, buckets: int, only: int | None) -> Sums:
        """Return the sums of `Comparable.bucket_sums`."""
        return sums_of(self.session.execute(comparable.bucket_sums(buckets, only)).fetchall())

    def rows_of_buckets(
        self, comparable: Comparable, buckets: int, wanted: list[int]
    ) -> Iterator[Row]:
        """Yield the rows in the wanted buckets, in order."""
        return ordered_rows(self.session, comparable.rows_of_buckets(buckets, wanted))

    def rows_of(self, comparable: Comparable, hashes: Iterable[int]) -> Iterator[Row]:
        """Yield the rows whose keys have these hashes."""
        return rows_of(self.session, comparable, hashes)

    def incomplete(self, *_: Any) -> Iterable[Row]:
        """Return nothing: the view looks up the values that a changed key kept."""
        return ()


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
