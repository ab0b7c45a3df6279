"""The source's side of a comparison: sums and rows, from one snapshot or current."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

from cdclake.errors import ComponentFailed, InputError
from cdclake.jobs.runtime import source
from cdclake.jobs.runtime.source import Connection
from cdclake.jobs.verify.compared_rows import Place, Sums, sums_of
from cdclake.plan import Table
from cdclake.postgres.event_values import NO_TIMEOUTS, TEXT_SETTINGS
from cdclake.verify.compare import Row
from cdclake.verify.statements import Comparable, unpacked

_FETCH_ROWS = 2000

_SETTINGS = (*TEXT_SETTINGS, *NO_TIMEOUTS, "SET jit = off")
_LENGTHS = """
SELECT column_name::text, character_maximum_length::int FROM information_schema.columns
WHERE table_schema = %s AND table_name = %s
"""


@contextmanager
def session(dsn: str, salt: str) -> Iterator[Connection]:
    """Open a connection for `Comparable`'s statements; each sees the source's current state.

    `salt` is empty if no column's mask needs it.
    """
    try:
        with source.connect(source.salted_dsn(dsn, salt)) as connection:
            for setting in _SETTINGS:
                connection.execute(setting)
            yield connection
    except psycopg.OperationalError as error:
        raise ComponentFailed(
            f"the connection to the source failed during the comparison: {_reason(error)}",
            "run verify again when the database is available",
            component="postgres",
        ) from None
    except psycopg.Error as error:
        raise InputError(
            f"the source rejected the comparison: {_reason(error)}",
            "connect as a user that may read all rows of every declared table",
        ) from None


@contextmanager
def snapshot(dsn: str, salt: str) -> Iterator[Connection]:
    """Open a connection whose statements all read the same snapshot of the source."""
    with session(dsn, salt) as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        connection.execute("SELECT pg_current_snapshot()")  # the first statement takes it
        yield connection


def column_lengths(connection: Connection, table: Table) -> Mapping[str, int | None]:
    """Return each column's maximum length in characters by name; None if unlimited.

    The columns of a query's result have none.
    """
    if table.is_query:
        return dict.fromkeys(column.source for column in table.columns)
    return dict(connection.execute(_LENGTHS, (table.schema, table.table)).fetchall())


@dataclass(frozen=True, slots=True)
class PostgresRows:
    """Rows of one session in the source, which reads one relation at a time."""

    connection: Connection

    @contextmanager
    def locks_released(self) -> Iterator[None]:
        """Release, at the end of the block, the locks that its reads take; only in a snapshot.

        PostgreSQL would keep a table's lock until the last table is compared, and readers and
        writers would wait behind a statement that waits for it. The snapshot stays. A table that is
        rewritten before it is read may look empty; the rounds that follow read its current rows.
        """
        with self.connection.transaction(force_rollback=True):
            yield

    def count(self, comparable: Comparable) -> int:
        """Return the number of rows."""
        query = f"SELECT count(*) FROM {comparable.relation}"
        row = self._reading(comparable).execute(query).fetchone()
        assert row is not None
        return int(row[0])

    def sums(self, comparable: Comparable, buckets: int, only: int | None) -> Sums:
        """Return the sums of `Comparable.bucket_sums`."""
        rows = self._reading(comparable).execute(comparable.bucket_sums(buckets, only))
        return sums_of(rows.fetchall())

    def rows_of_buckets(
        self, comparable: Comparable, buckets: int, wanted: list[int]
    ) -> Iterator[Row]:
        """Yield the rows in the wanted buckets, in order; only within a snapshot."""
        connection = self._reading(comparable)
        return ordered_rows(connection, comparable.rows_of_buckets(buckets, wanted))

    def rows_of(self, comparable: Comparable, places: Collection[Place]) -> Iterator[Row]:
        """Return the current rows of these keys, perhaps with rows of others."""
        return rows_of(self._reading(comparable), comparable, list(places))

    def _reading(self, comparable: Comparable) -> Connection:
        self.connection.execute(comparable.search_path)
        return self.connection


def ordered_rows(connection: Connection, statement: str) -> Iterator[Row]:
    """Yield the rows of a statement, a few in memory at a time; only within a snapshot."""
    with connection.cursor("cdclake_verify") as cursor:
        cursor.itersize = _FETCH_ROWS
        cursor.execute(statement)
        yield from map(Row.of, cursor)


def rows_of(
    connection: Connection, comparable: Comparable, places: Sequence[Place]
) -> Iterator[Row]:
    """Return the current rows of these hashes and keys, through an index if possible.

    The result may include rows of other keys.
    """
    key = [column for column in comparable.columns if column.in_key]
    keys = [unpacked(packed) for _, packed in places]
    spelled = [
        [column.show(text) for column, text in zip(key, texts, strict=True) if text is not None]
        for texts in keys
    ]
    found = None
    if all(column.seekable for column in key) and all(len(s) == len(key) for s in spelled):
        try:
            found = connection.execute(comparable.rows_of_keys(spelled)).fetchall()
        except (psycopg.DataError, psycopg.errors.UndefinedFunction, ValueError):
            found = None  # a key that exists only in the lake may be invalid in the source's type
    if found is None:
        hashes = ",".join(str(hash_) for hash_, _ in places)
        scan = comparable.rows_of_hashes(f"SELECT unnest('{{{hashes}}}'::bigint[])")
        found = connection.execute(scan).fetchall()
    return map(Row.of, found)


def _reason(error: psycopg.Error) -> str:
    return error.diag.message_primary or str(error).strip() or type(error).__name__
