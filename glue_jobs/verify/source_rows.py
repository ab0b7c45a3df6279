"""The source's side of a comparison: sums and rows, from one snapshot or as of now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import psycopg

from cdclake.errors import ComponentFailed, InputError
from cdclake.jobs.runtime import source
from cdclake.jobs.runtime.source import Connection
from cdclake.plan import Table
from cdclake.verify.columns import SALT_SETTING
from cdclake.verify.compare import Row
from cdclake.verify.statements import Comparable, unpacked

_FETCH_ROWS = 2000

# A row's text may depend on the session only in ways that are set here.
_SETTINGS = (
    "SET TimeZone = 'UTC'",
    "SET DateStyle = 'ISO, YMD'",
    "SET IntervalStyle = 'postgres'",
    "SET extra_float_digits = 1",
    "SET row_security = off",  # rows hidden from us would pass for extra ones
    "SET statement_timeout = 0",
    "SET idle_in_transaction_session_timeout = 0",
    "SET jit = off",
)
_LENGTHS = """
SELECT column_name::text, character_maximum_length::int FROM information_schema.columns
WHERE table_schema = %s AND table_name = %s
"""


@contextmanager
def session(dsn: str, salt: str) -> Iterator[Connection]:
    """A connection on which `Comparable`'s statements run; each sees the source as it is then."""
    try:
        with source.connect(dsn) as connection:
            for setting in _SETTINGS:
                connection.execute(setting)
            connection.execute("SELECT set_config(%s, %s, false)", (SALT_SETTING, salt))
            yield connection
    except psycopg.OperationalError as error:
        raise ComponentFailed(
            f"the source broke off the comparison: {_reason(error)}",
            "run verify again when the database answers",
            component="postgres",
        ) from None
    except psycopg.Error as error:
        raise InputError(
            f"the source refused the comparison: {_reason(error)}",
            "connect as a user that may read every declared table wholly",
        ) from None


@contextmanager
def snapshot(dsn: str, salt: str) -> Iterator[Connection]:
    """The same, with every statement reading the one state that the source is in now."""
    with session(dsn, salt) as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        connection.execute("SELECT pg_current_snapshot()")  # the first statement takes it
        yield connection


def column_lengths(connection: Connection, table: Table) -> Mapping[str, int | None]:
    """By name how many characters each column of the source's table holds at most; None: no end."""
    return dict(connection.execute(_LENGTHS, (table.schema, table.table)).fetchall())


def count(connection: Connection, comparable: Comparable) -> int:
    """The number of rows."""
    row = connection.execute(f"SELECT count(*) FROM {comparable.relation}").fetchone()
    assert row is not None
    return int(row[0])


def ordered_rows(connection: Connection, statement: str) -> Iterator[Row]:
    """The rows of a statement, held a few at a time; only within a snapshot."""
    with connection.cursor("cdclake_verify") as cursor:
        cursor.itersize = _FETCH_ROWS
        cursor.execute(statement)
        yield from map(Row.of, cursor)


def rows_of(
    connection: Connection, comparable: Comparable, places: Sequence[tuple[int, str]]
) -> Iterator[Row]:
    """The rows of these hashes and keys as of now, through an index where there may be one.

    Rows of other keys may be among them.
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
            found = None  # a key that only the lake has need not be one of the source's type
    if found is None:
        hashes = ",".join(str(hash_) for hash_, _ in places)
        scan = comparable.rows_of_hashes(f"SELECT unnest('{{{hashes}}}'::bigint[])")
        found = connection.execute(scan).fetchall()
    return map(Row.of, found)


def _reason(error: psycopg.Error) -> str:
    return error.diag.message_primary or str(error).strip() or type(error).__name__
