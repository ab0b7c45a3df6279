"""Changes to many tables of a real PostgreSQL at a steady rate."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from psycopg import sql

from benchmarks.many_tables import value_of
from cdclake.plan import Table

CHANGES = 100  # in a transaction, all of one table: so many inserts, updates and deletes
INSERTS, UPDATES, DELETES = 70, 25, 5
_INSERT = "INSERT INTO {table} SELECT {values} FROM generate_series({first}, {last}) AS key"
_IDS = "(SELECT {id} FROM unnest({keys}::bigint[]) AS key)"
_UPDATE = (
    "UPDATE {table} SET status = 'paid', updated_at = now() WHERE id = ANY (ARRAY" + _IDS + ")"
)
_DELETE = "DELETE FROM {table} WHERE id = ANY (ARRAY" + _IDS + ")"


@dataclass(slots=True)
class Keys:
    """The living keys of a table: all from `first` to before `following`."""

    first: int = 1
    following: int = 1


class Traffic:
    """Writes to tables that are empty at first; every change is an event.

    New keys are inserted, the oldest deleted, and a stretch between them updated.
    """

    def __init__(self, dsn: str, tables: Sequence[Table]) -> None:
        self._dsn, self._tables = dsn, tables
        self._keys = [Keys() for _ in tables]
        self._turn = 0

    def open(self, rows: int) -> None:
        """So many rows into each table."""
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            for table, keys in zip(self._tables, self._keys, strict=True):
                _insert(connection, table, keys.following, rows)
                keys.following += rows

    def write(self, changes: int) -> None:
        """So many changes, as fast as the database takes them."""
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            for _ in range(changes // CHANGES):
                self._transaction(connection)

    def hold(self, rate: float, seconds: float) -> float:
        """`rate` changes a second for so long; the rate that the database took."""
        started, written = time.monotonic(), 0
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while (passed := time.monotonic() - started) < seconds:
                ahead = written / rate - passed
                if ahead > 0:
                    time.sleep(min(ahead, seconds - passed))
                    continue
                self._transaction(connection)
                written += CHANGES
        return written / (time.monotonic() - started)

    def _transaction(self, connection: psycopg.Connection) -> None:
        number = self._turn % len(self._tables)
        self._turn += 1
        table, keys = self._tables[number], self._keys[number]
        changed = self._draw(keys, UPDATES)
        with connection.pipeline(), connection.transaction():
            _insert(connection, table, keys.following, INSERTS)
            _execute(connection, _UPDATE, table, keys=changed)
            _execute(connection, _DELETE, table, keys=list(range(keys.first, keys.first + DELETES)))
        keys.following += INSERTS
        keys.first += DELETES

    def _draw(self, keys: Keys, count: int) -> list[int]:
        """Return living keys to update, none of them the oldest, which are deleted."""
        middle = keys.first + (keys.following - keys.first) // 2
        return list(range(middle, middle + count))


def _insert(connection: psycopg.Connection, table: Table, first: int, rows: int) -> None:
    _execute(connection, _INSERT, table, first=first, last=first + rows - 1)


def _execute(
    connection: psycopg.Connection, statement: str, table: Table, **given: int | list[int]
) -> None:
    [key] = table.key_columns
    query = sql.SQL(statement).format(
        table=sql.Identifier(table.schema, table.table),
        values=sql.SQL(", ").join(sql.SQL(value_of(column)) for column in table.columns),
        id=sql.SQL(value_of(key)),
        **given,
    )
    connection.execute(query)
