"""The source database as the local lake meets it: connect, prepare, mark, measure, leave."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from cdclake.debezium.connector import snapshot_signal
from cdclake.errors import InputError
from cdclake.naming import SIGNAL_TABLE, SOURCE_SCHEMA
from cdclake.plan import Plan, Table
from cdclake.postgres import queries
from cdclake.postgres.prepare import MARKER_QUERY
from cdclake.postgres.quoting import qualified
from cdclake.postgres.source import SESSION_SETTINGS, Prepared, leave_session, prepare_session

Connection = psycopg.Connection[tuple[Any, ...]]

_CONNECT_S = 10


@contextmanager
def connect(dsn: str) -> Iterator[Connection]:
    """A session that commits each statement; `InputError` where there is none to be had.

    Nothing is looked up but in pg_catalog, and the password comes up in no message.
    """
    try:
        connection = psycopg.connect(
            dsn, autocommit=True, connect_timeout=_CONNECT_S, application_name="cdclake"
        )
    except psycopg.ProgrammingError:  # it would repeat the whole DSN
        raise InputError(
            "the DSN of the source cannot be read",
            "write it like postgresql://user:password@host:5432/database, with special characters"
            " of the password percent-encoded",
        ) from None
    except (psycopg.Error, UnicodeError) as error:
        raise _unreachable(dsn, error) from None
    try:
        with connection:
            for setting in SESSION_SETTINGS:
                connection.execute(setting)
            yield connection
    except psycopg.OperationalError as error:
        if not connection.broken:
            raise
        raise _unreachable(dsn, error) from None


def _unreachable(dsn: str, error: Exception) -> InputError:
    parts = conninfo_to_dict(dsn)
    host = parts.get("host") or os.environ.get("PGHOST") or "the local socket"
    port = parts.get("port") or os.environ.get("PGPORT") or "5432"
    lines = str(error).strip().splitlines()
    reason = lines[-1].strip() if lines else type(error).__name__
    password = parts.get("password")
    if password:
        reason = reason.replace(str(password), "***")
    lowered = reason.lower()
    if "authentication" in lowered or "no password" in lowered or "role" in lowered:
        remedy = "check user and password in the DSN, and the server's pg_hba.conf"
    elif "database" in lowered and "does not exist" in lowered:
        remedy = "check the database's name in the DSN"
    elif "ssl" in lowered:
        remedy = "check the DSN's sslmode"
    else:
        remedy = "check that the server runs, listens there, and that no firewall is in between"
    return InputError(f"no connection to the source at {host}:{port}: {reason}", remedy)


def prepare_source(
    dsn: str, plan: Plan, *, embedded: bool, role_password: str, own_stream: bool = False
) -> Prepared:
    """`prepare_session` on a connection of its own."""
    with connect(dsn) as connection:
        return prepare_session(
            connection,
            plan,
            embedded=embedded,
            role_password=role_password,
            own_stream=own_stream,
        )


def remove_from_source(dsn: str, plan: Plan) -> None:
    """`leave_session` on a connection of its own."""
    with connect(dsn) as connection:
        leave_session(connection, plan)


def write_marker(dsn: str, marker: str = "") -> int:
    """Write a row that will come through the stream; a WAL position at or after its commit."""
    with connect(dsn) as connection:
        connection.execute(MARKER_QUERY, (marker or os.urandom(8).hex(),))
        return int(_value(connection, queries.WAL_POSITION))


def signal_snapshot(dsn: str, tables: Iterable[Table]) -> None:
    """Have the connector read these tables again while the others flow."""
    kind, data = snapshot_signal(tables)
    signals = qualified(SOURCE_SCHEMA, SIGNAL_TABLE)
    with connect(dsn) as connection:
        connection.execute(
            f"INSERT INTO {signals} (id, type, data) VALUES (%s, %s, %s)",
            (uuid.uuid4().hex, kind, data),
        )


def confirmed_lsn(dsn: str, slot: str) -> int | None:
    """Up to where the slot's reader has confirmed; None if there is no slot."""
    with connect(dsn) as connection:
        value = _value(connection, queries.CONFIRMED_LSN, slot)
        return None if value is None else int(value)


def slot_wal(dsn: str, slot: str) -> tuple[int, int | None]:
    """WAL bytes that the slot holds (0 without a slot), and the most it may hold (None: no end)."""
    with connect(dsn) as connection:
        row = connection.execute(queries.SLOT_WAL, (slot,)).fetchone()
        assert row is not None
        return int(row[0] or 0), None if row[1] is None else int(row[1])


def _value(connection: Connection, query: str, *parameters: str) -> Any:
    row = connection.execute(query, parameters or None).fetchone()
    return None if row is None else row[0]
