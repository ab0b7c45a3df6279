"""Access to the source database: connect, write markers and signals, read the slot."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlparse

import boto3
import psycopg
from psycopg.conninfo import make_conninfo

from cdclake.debezium.connector import snapshot_signal
from cdclake.debezium.worker import PASSWORD_KEY, USER_KEY
from cdclake.jobs.runtime.connection_errors import unreachable
from cdclake.jobs.runtime.dsn import dsn_parts, invalid_dsn
from cdclake.jobs.runtime.secrets import secret_value
from cdclake.plan import Plan, Table
from cdclake.postgres import queries
from cdclake.postgres.catalog import SourceTable, TableId
from cdclake.postgres.mask_values import salt_option
from cdclake.postgres.prepare import MARKER_QUERY, SIGNAL
from cdclake.postgres.source import SESSION_SETTINGS, read_catalog

Connection = psycopg.Connection[tuple[Any, ...]]

_CONNECT_TIMEOUT_S = 10
_COMMIT_TIMEOUT_S, _COMMIT_POLL_S = 3.0, 0.02


@contextmanager
def deployed_dsn(arguments: Mapping[str, str]) -> Iterator[str]:
    """Build the DSN from a job's arguments; it is valid inside the block.

    `source` is JSON of libpq parameters without user and password, `login` the name of the secret
    with both, `authorities` the URI of a file with the CA certificates to trust.
    """
    words = json.loads(arguments["source"])
    user, password = (secret_value(arguments["login"], key) for key in (USER_KEY, PASSWORD_KEY))
    with TemporaryDirectory() as folder:
        if "authorities" in arguments:
            words["sslrootcert"] = _downloaded(arguments["authorities"], Path(folder))
        yield make_conninfo(**words, user=user, password=password)


def salted_dsn(dsn: str, salt: str) -> str:
    """Return the DSN whose connections have the salt as a setting; "" adds nothing.

    The login's own options stay. Other connections keep the DSN without it: a pooler may refuse it.
    """
    if not salt:
        return dsn
    options = [str(given) for given in (dsn_parts(dsn).get("options"), salt_option(salt)) if given]
    return make_conninfo(dsn, options=" ".join(options))


def source_tables(dsn: str, plan: Plan) -> dict[TableId, SourceTable]:
    """Read the catalog entries of the plan's tables; a table that is gone has none."""
    wanted = {(table.schema, table.table) for table in plan.tables}
    with connect(dsn) as connection:
        return {found.id: found for found in read_catalog(connection, tables=wanted)}


def _downloaded(uri: str, folder: Path) -> str:
    parsed, file = urlparse(uri), str(folder / "authorities.pem")
    boto3.client("s3").download_file(parsed.netloc, parsed.path.lstrip("/"), file)
    return file


@contextmanager
def connect(dsn: str) -> Iterator[Connection]:
    """Open a session in autocommit mode; raise `InputError` if it fails or breaks.

    The search path is pg_catalog only, and no message contains the password.
    """
    dsn_parts(dsn)  # refuses a DSN before libpq takes a part of its password for the host
    try:
        connection = psycopg.connect(
            dsn,
            autocommit=True,
            connect_timeout=_CONNECT_TIMEOUT_S,
            application_name="cdclake",
            client_encoding="UTF8",  # with a server's SQL_ASCII psycopg returns texts as bytes
        )
    except psycopg.ProgrammingError:  # its message has parts of the DSN
        raise invalid_dsn() from None
    except (psycopg.Error, UnicodeError) as error:
        raise unreachable(dsn, error) from None
    try:
        with connection:
            for setting in SESSION_SETTINGS:
                connection.execute(setting)
            yield connection
    except psycopg.OperationalError as error:
        if not connection.broken:
            raise
        raise unreachable(dsn, error) from None


def write_marker(dsn: str, marker: str = "") -> int:
    """Write a row that the stream will deliver; return an LSN at or after its commit."""
    with connect(dsn) as connection:
        connection.execute(MARKER_QUERY, (marker or os.urandom(8).hex(),))
        return int(_value(connection, queries.WAL_POSITION))


def wal_position(dsn: str) -> int:
    """Return the LSN that the source's WAL has reached: later commits are above it."""
    with connect(dsn) as connection:
        return int(_value(connection, queries.WAL_POSITION))


def settled_lsn(dsn: str) -> int:
    """Return the LSN that the WAL has reached, once the rows of commits up to it are visible.

    A commit is in the WAL before other sessions see its rows. So write a marker, whose commit
    follows the first one above the LSN, and wait for the transactions that are then in progress: of
    those, one that has not ended within the time is not committing, and commits later.
    """
    with connect(dsn) as connection:
        lsn = int(_value(connection, queries.WAL_POSITION))
        connection.execute(MARKER_QUERY, (os.urandom(8).hex(),))
        deadline, waits_for = time.monotonic() + _COMMIT_TIMEOUT_S, _in_progress(connection)
        while waits_for and time.monotonic() < deadline:
            time.sleep(_COMMIT_POLL_S)
            waits_for &= _in_progress(connection)
        return lsn


def _in_progress(connection: Connection) -> set[str]:
    return {str(row[0]) for row in connection.execute(queries.IN_PROGRESS)}


def signal_snapshot(dsn: str, tables: Iterable[Table], request: str | None = None) -> None:
    """Ask the connector to read these tables again while the stream continues.

    With a `request` the signal has this id, so that `is_signalled` finds it.
    """
    kind, data = snapshot_signal(tables)
    with connect(dsn) as connection:
        connection.execute(
            f"INSERT INTO {SIGNAL} (id, type, data) VALUES (%s, %s, %s)",
            (request or uuid.uuid4().hex, kind, data),
        )


def is_signalled(dsn: str, request: str) -> bool:
    """Return whether the signal for the request was written."""
    with connect(dsn) as connection:
        return _value(connection, f"SELECT id FROM {SIGNAL} WHERE id = %s", request) is not None


def confirmed_lsn(dsn: str, slot: str) -> int | None:
    """Return the slot's confirmed LSN; None if there is no slot."""
    with connect(dsn) as connection:
        value = _value(connection, queries.CONFIRMED_LSN, slot)
        return None if value is None else int(value)


def _value(connection: Connection, query: str, *parameters: str) -> Any:
    row = connection.execute(query, parameters or None).fetchone()
    return None if row is None else row[0]
