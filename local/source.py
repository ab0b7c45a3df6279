"""The source database as the local lake meets it: connect, look, prepare, mark, leave."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from cdclake.debezium.connector import snapshot_signal
from cdclake.errors import InputError
from cdclake.naming import SIGNAL_TABLE, SOURCE_SCHEMA
from cdclake.plan import Plan, Table
from cdclake.postgres import queries, teardown
from cdclake.postgres.admission import check_table
from cdclake.postgres.catalog import SourceTable, TableId, assemble
from cdclake.postgres.identity import alterations
from cdclake.postgres.new_partitions import follow_identity, unfollow_identity
from cdclake.postgres.prepare import MARKER_QUERY, ColumnList, PublicationState, prepare
from cdclake.postgres.published import omitted_columns
from cdclake.postgres.quoting import qualified
from cdclake.postgres.refusal import Refusal, refused
from cdclake.postgres.scram import scram_verifier
from cdclake.postgres.server import ServerState, check_server
from cdclake.postgres.statement import Statement

Connection = psycopg.Connection[tuple[Any, ...]]

_CONNECT_S = 10
# A statement that blocks writers waits at most this long at a time: so long, too, do they.
_EXCLUSIVE_MS = 200
# The others may outwait an autovacuum, which yields after a second.
_SHARED_MS = 5000
_LOCK_TRIES = 60
_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What `prepare_source` found and did."""

    database: str
    version: int
    slot_exists: bool  # False: the connector will make it, and history starts anew
    slot_lost: bool  # its WAL is gone: drop it and begin a new epoch
    altered: tuple[str, ...]  # statements run on the user's tables (embedded only)
    omitted: dict[str, tuple[str, ...]]  # `schema.table` -> columns that do not reach the lake
    renamed: frozenset[str]  # tables with a column that has its new name by now
    unpublished: frozenset[str]  # tables that the publication, which was there, had lost


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
            connection.execute("SET search_path = pg_catalog")
            connection.execute("SET client_min_messages = warning")
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


def read_server(connection: Connection, name: str) -> ServerState:
    """The server's state, and that of the role and slot called `name`."""
    row = connection.execute(queries.SERVER, (name, name)).fetchone()
    assert row is not None
    return ServerState.from_row(row)


def read_names(connection: Connection) -> tuple[TableId, ...]:
    """Every table of every schema."""
    return tuple((row[1], row[2]) for row in connection.execute(queries.RELATIONS))


def read_catalog(
    connection: Connection,
    *,
    tables: Collection[TableId] | None = None,
    schemas: Collection[str] | None = None,
) -> tuple[SourceTable, ...]:
    """The named tables, or every relation of the named schemas, or every relation there is."""
    with connection.transaction():  # one view of the catalog
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        relations = connection.execute(queries.RELATIONS).fetchall()
        wanted = {
            row[0]
            for row in relations
            if (tables is None or (row[1], row[2]) in tables)
            and (schemas is None or row[1] in schemas)
        }
        whole = sorted(wanted | {row[0] for row in relations if row[6] in wanted})
        columns = connection.execute(queries.COLUMNS, (sorted(wanted),)).fetchall()
        indexes = connection.execute(queries.INDEXES, (whole,)).fetchall()
    return assemble(relations, columns, indexes, wanted)


def prepare_source(
    dsn: str, plan: Plan, *, embedded: bool, role_password: str, own_stream: bool = False
) -> Prepared:
    """Make the source ready for the plan, or say everything that speaks against it.

    Nothing is changed before everything is checked. `embedded`: the database is the lake's own,
    so declared replica identities are set; a user's is never altered. `own_stream`: an active slot
    of the plan's name is this lake's.
    """
    name, is_bulk = plan.source_object, plan.snapshot_mode == "bulk"
    with connect(dsn) as connection:
        state = read_server(connection, name)
        named = {(table.schema, table.table) for table in plan.tables}
        actual = {table.id: table for table in read_catalog(connection, tables=named)}
        refusals = check_server(state, name, own_stream=own_stream or embedded, is_bulk=is_bulk)
        refusals += _check_tables(connection, plan, actual, state, embedded)
        if refusals:
            raise refused(refusals)
        pairs = [(table, actual[table.schema, table.table]) for table in plan.tables]
        publication = read_publication(connection, name)
        altered = [statement for pair in pairs for statement in alterations(*pair)]
        for statement in altered:  # each alone: no lock is held while waiting for the next
            _execute(connection, [statement])
        statements = prepare(
            plan,
            actual,
            database=state.database,
            password_verifier=scram_verifier(role_password, os.urandom(16)),
            publication=publication,
            granted=[(row[0], row[1]) for row in connection.execute(queries.GRANTED, (name,))],
            replication_grant=state.replication_grant,
        )
        _execute(connection, statements + (follow_identity() if embedded else []))
    return _prepared(state, pairs, publication, altered)


def _prepared(
    state: ServerState,
    pairs: Sequence[tuple[Table, SourceTable]],
    publication: PublicationState,
    altered: Sequence[Statement],
) -> Prepared:
    return Prepared(
        database=state.database,
        version=state.version,
        slot_exists=state.slot_exists,
        slot_lost=state.slot_lost,
        altered=tuple(statement.sql for statement in altered),
        omitted={table.source: omitted_columns(table, found) for table, found in pairs},
        renamed=frozenset(table.source for table, found in pairs if _is_renamed(table, found)),
        unpublished=frozenset(table.source for table, _ in pairs if publication.lacks(table)),
    )


def _is_renamed(table: Table, found: SourceTable) -> bool:
    return any(c.renamed_from and c.source in found.by_name for c in table.columns)


def _check_tables(
    connection: Connection,
    plan: Plan,
    actual: dict[TableId, SourceTable],
    state: ServerState,
    embedded: bool,
) -> list[Refusal]:
    known = read_names(connection)
    return [
        refusal
        for table in plan.tables
        for refusal in check_table(
            table,
            actual.get((table.schema, table.table)),
            role=plan.source_object,
            known=known,
            may_alter=embedded,
            sees_all_rows=state.role_sees_all_rows,
            version=state.version,
        )
    ]


def read_publication(connection: Connection, name: str) -> PublicationState:
    """The pipeline's publication as it is."""
    row = connection.execute(queries.PUBLICATION, (name,)).fetchone()
    if row is None:
        return PublicationState()
    published = connection.execute(queries.PUBLISHED, (name,)).fetchall()
    tables: dict[TableId, ColumnList] = {
        (schema, table): None if columns is None else tuple(columns)
        for schema, table, columns, _ in published
    }
    filtered = any(row_filter for *_, row_filter in published)
    return PublicationState(True, row[0], row[1], None if filtered else tables)


def _execute(connection: Connection, statements: Sequence[Statement]) -> None:
    """Run all in one transaction, never waiting long for a lock, and try again if need be."""
    blocking = any(statement.blocks_writers for statement in statements)
    wait = _EXCLUSIVE_MS if blocking else _SHARED_MS
    for attempt in range(1, _LOCK_TRIES + 1):
        current = statements[0]
        try:
            with connection.transaction():
                connection.execute(f"SET LOCAL lock_timeout = {wait}")
                for current in statements:
                    connection.execute(current.sql)
            return
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
            if attempt == _LOCK_TRIES:
                raise InputError(
                    f"the source's {current.purpose} could not be set: a transaction keeps it"
                    " locked",
                    "end the transactions that pg_stat_activity shows as old, and run `up` again",
                ) from None
            time.sleep(_PAUSE_S)
        except psycopg.Error as error:
            reason = error.diag.message_primary or type(error).__name__
            raise InputError(
                f"the source refused to set {current.purpose}: {reason}",
                "give the user of the DSN the right to do so, or connect as a superuser",
            ) from None


def remove_from_source(dsn: str, plan: Plan) -> None:
    """Take slot, publication, schema and role out of the source; fine if they are gone by now."""
    name = plan.source_object
    with connect(dsn) as connection:
        for _ in range(_LOCK_TRIES):
            _execute(connection, [teardown.end_sessions(name)])
            _execute(connection, [teardown.drop_slot(name)])
            slot = connection.execute(
                "SELECT FROM pg_replication_slots"
                " WHERE slot_name = %s AND database = current_database()",
                (name,),
            )
            if slot.fetchone() is None:
                break
            time.sleep(_PAUSE_S)
        else:
            raise InputError(
                f"the replication slot {name} is still being read",
                "stop whoever streams from it, and run `down` again: an unread slot keeps WAL",
            )
        _execute(connection, [teardown.drop_publication(name)])
        _execute(connection, [unfollow_identity(), teardown.drop_schema()])
        _execute(connection, [teardown.drop_role(name)])


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
