"""Reading of source rows in a Spark task, within the snapshot of a poll."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pyarrow as pa

from cdclake.errors import InputError
from cdclake.jobs.runtime.dsn import with_authorities
from cdclake.jobs.runtime.source import connect, salted_dsn
from cdclake.postgres.bulk_read import import_snapshot, value_name

_FETCHED = 1000  # rows that a task holds at once, regardless of their width


@dataclass(frozen=True, slots=True, kw_only=True)
class RowReader:
    """Query that each task runs for its chunks."""

    dsn: str
    authorities: str  # PEM; "" if the DSN names no file
    salt: str  # "" if no column's mask needs it
    snapshot: str
    search_path: str  # the statement that sets it for `query`
    query: str
    types: tuple[pa.DataType, ...]

    def read(self, chunks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of these chunks, each a condition in the column `condition`."""
        for batch in chunks:
            for condition in batch.column("condition").to_pylist():
                yield from self._rows(condition)

    def _rows(self, condition: str) -> Iterator[pa.RecordBatch]:
        names = [value_name(index) for index, _ in enumerate(self.types)]
        query = f"SELECT {', '.join(names)} FROM ({self.query}) AS source_rows WHERE {condition}"
        with (
            waits_reported(), self._dsn() as dsn, connect(dsn) as connection,
            connection.transaction(),
        ):  # fmt: skip
            first = [*import_snapshot(self.snapshot), self.search_path]
            connection.execute("; ".join(first).encode())
            with connection.cursor("cdclake_poll") as cursor:
                cursor.execute(query.encode())
                while rows := cursor.fetchmany(_FETCHED):
                    yield self._batch(names, rows)

    def _batch(self, names: list[str], rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
        values = zip(*rows, strict=True)
        arrays = [pa.array(v, kind) for v, kind in zip(values, self.types, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, names)

    def _dsn(self) -> AbstractContextManager[str]:
        return with_authorities(salted_dsn(self.dsn, self.salt), self.authorities)


@contextmanager
def waits_reported() -> Iterator[None]:
    """Report a lock timeout inside the block as an error of the table that is polled."""
    try:
        yield
    except psycopg.errors.LockNotAvailable:
        raise InputError(
            "a statement that rewrites or empties a table waits for the poll, which waits for it",
            "poll again when the statement has ended",
        ) from None
