"""Operations on the source database over a given session: inspect, prepare, leave.

The local lake and the deployment's function both use this module. A session is a psycopg connection
with autocommit and only pg_catalog in its search path.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cdclake.errors import InputError
from cdclake.plan import Plan, Table
from cdclake.postgres import queries, teardown
from cdclake.postgres.admission import check_table
from cdclake.postgres.catalog import SourceTable, TableId, assemble
from cdclake.postgres.identity import alterations
from cdclake.postgres.key_identity import is_unenforced
from cdclake.postgres.key_rows import refuse_repeated, repeated_key
from cdclake.postgres.new_partitions import check_new_partitions, follow_identity, unfollow_identity
from cdclake.postgres.ownership import Owner
from cdclake.postgres.polled_sources import check_polled_sources, polled_relations
from cdclake.postgres.prepare import ColumnList, PublicationState, prepare
from cdclake.postgres.published import omitted_columns
from cdclake.postgres.query_schemas import read_query_schemas
from cdclake.postgres.refusal import Refusal, refused
from cdclake.postgres.role_rights import check_role_rights
from cdclake.postgres.scram import scram_verifier
from cdclake.postgres.server import ServerState, check_owner, check_server, check_version
from cdclake.postgres.session import Session, reason_of, sqlstate
from cdclake.postgres.statement import Statement

# First statements of each session.
SESSION_SETTINGS = ("SET search_path = pg_catalog", "SET client_min_messages = warning")

# Maximum wait of a statement that blocks writers, since writers wait behind it.
_EXCLUSIVE_MS = 200
# Other statements may wait longer than an autovacuum, which yields after a second.
_SHARED_MS = 5000
_LOCK_TRIES = 60
_KEY_SEARCH_MS = 5000
_PAUSE_S = 0.5
_LOCKED = {"55P03", "40P01"}  # lock_not_available, deadlock_detected
# Oldest servers that have what the queries read: pg_partition_root and pg_attribute.attgenerated;
# pg_replication_slots.wal_status and pg_publication.pubviaroot.
_HAS_CATALOG, _HAS_SLOTS = 120000, 130000


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """Findings and changes of `prepare_session`."""

    database: str
    version: int
    slot_loss: str  # why it cannot be read further: drop it and start a new epoch; "": it can
    altered: tuple[str, ...]  # statements run on the user's tables (embedded only)
    omitted: dict[str, tuple[str, ...]]  # `schema.table` -> columns that do not reach the lake
    renamed: frozenset[str]  # tables with a column that already has its new name


def read_server(connection: Session, name: str) -> ServerState:
    """Read the state of the server, and of the role and slot `name`."""
    _refuse_before(connection, _HAS_SLOTS)
    row = connection.execute(queries.SERVER, (name, name, name)).fetchone()
    assert row is not None
    return ServerState.from_row(row)


def _refuse_before(connection: Session, oldest: int) -> None:
    """Raise an error for a server without what a query reads, which would fail with it."""
    if (version := connection.info.server_version) < oldest:
        raise refused(check_version(version))


def read_names(connection: Session) -> tuple[TableId, ...]:
    """Read the names of all tables of all schemas."""
    return tuple((row[1], row[2]) for row in connection.execute(queries.RELATIONS))


def read_catalog(
    connection: Session,
    *,
    tables: Collection[TableId] | None = None,
    schemas: Collection[str] | None = None,
) -> tuple[SourceTable, ...]:
    """Read the named tables, or all relations of the named schemas, or all relations."""
    _refuse_before(connection, _HAS_CATALOG)
    with connection.transaction():  # a consistent view of the catalog
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


def prepare_session(
    connection: Session,
    plan: Plan,
    *,
    embedded: bool,
    owner: Owner,
    role_password: str,
    kept: Collection[str] = (),
) -> Prepared:
    """Prepare the source for the plan, or raise an error with every reason against it.

    Nothing is changed before everything is checked.

    `embedded`: the database belongs to the lake, so declared replica identities are set; those
    of a user's database are never altered.
    `owner`: the lake; the objects in a user's database must be its own, and get its mark.
    `kept`: tables (`schema.table`) that the lake streams already. If the source has lost one, the
    others are prepared without it.
    """
    name = plan.source_object
    state, actual = check_session(connection, plan, embedded=embedded, owner=owner, kept=kept)
    plan = _without_missing(plan, actual, kept)
    pairs = [(table, actual[table.schema, table.table]) for table in plan.tables]
    publication = read_publication(connection, name)
    altered = [statement for pair in pairs for statement in alterations(*pair)]
    for statement in altered:  # each alone: no lock is held while waiting for the next
        _execute(connection, [statement])
    statements = _statements(connection, plan, actual, state, publication, role_password, owner)
    _execute(
        connection,
        statements + (follow_identity() if embedded else []),
        lambda: check_role_rights(connection, plan, actual, state.user, is_granted=True),
    )
    return _prepared(state, pairs, altered)


def _statements(
    connection: Session,
    plan: Plan,
    actual: Mapping[TableId, SourceTable],
    state: ServerState,
    publication: PublicationState,
    role_password: str,
    owner: Owner,
) -> list[Statement]:
    """Return the statements that prepare the source."""
    name = plan.source_object
    granted = connection.execute(queries.GRANTED, (name,)).fetchall()
    return prepare(
        plan,
        actual,
        database=state.database,
        password_verifier=scram_verifier(role_password, os.urandom(16)),
        mark=owner.mark,
        publication=publication,
        granted=[(schema, table) for schema, table in granted],
        replication_grant=state.replication_grant,
        query_schemas=read_query_schemas(connection, plan),
    )


def check_session(
    connection: Session,
    plan: Plan,
    *,
    embedded: bool,
    owner: Owner,
    kept: Collection[str] = (),
) -> tuple[ServerState, dict[TableId, SourceTable]]:
    """Return the server and the plan's tables, or raise an error with every reason against them.

    The arguments are those of `prepare_session`. Nothing is changed.
    """
    name, is_bulk = plan.source_object, plan.snapshot_mode == "bulk"
    state = read_server(connection, name)
    named = {(table.schema, table.table) for table in (*plan.tables, *polled_relations(plan))}
    actual = {table.id: table for table in read_catalog(connection, tables=named)}
    plan = _without_missing(plan, actual, kept)
    refusals = check_server(state, name, None if embedded else owner, is_bulk=is_bulk)
    refusals += _check_tables(connection, plan, actual, state, embedded)
    refusals += check_role_rights(connection, plan, actual, state.user, is_granted=False)
    if refusals or (refusals := _check_keys(connection, plan, actual, kept)):
        raise refused(refusals)
    return state, actual


def _prepared(
    state: ServerState,
    pairs: Sequence[tuple[Table, SourceTable]],
    altered: Sequence[Statement],
) -> Prepared:
    return Prepared(
        database=state.database,
        version=state.version,
        slot_loss=state.slot_loss,
        altered=tuple(statement.sql for statement in altered),
        omitted={table.source: omitted_columns(table, found) for table, found in pairs},
        renamed=frozenset(table.source for table, found in pairs if is_renamed(table, found)),
    )


def renamed_early(tables: Iterable[Table], actual: Mapping[TableId, SourceTable]) -> frozenset[str]:
    """Return the tables (`schema.table`) whose columns declared as renamed are renamed already."""
    return frozenset(
        table.source
        for table in tables
        if (found := actual.get((table.schema, table.table))) and is_renamed(table, found)
    )


def is_renamed(table: Table, found: SourceTable) -> bool:
    """Check whether a column that is declared as renamed has its new name already."""
    return any(c.renamed_from and c.source in found.by_name for c in table.columns)


def _check_tables(
    connection: Session,
    plan: Plan,
    actual: dict[TableId, SourceTable],
    state: ServerState,
    embedded: bool,
) -> list[Refusal]:
    known = read_names(connection)
    refusals = check_polled_sources(connection, plan, actual, known)
    for table in plan.tables:
        found = actual.get((table.schema, table.table))
        broken = check_table(
            table,
            found,
            role=plan.source_object,
            known=known,
            may_alter=embedded,
            role_exists=state.role_exists,
            sees_all_rows=state.role_sees_all_rows,
            version=state.version,
        )
        if not broken and not embedded and found is not None:
            broken = check_new_partitions(table, found)
        refusals += broken
    return refusals


def check_polled_tables(connection: Session, plan: Plan) -> None:
    """Raise an error with every reason why the plan's polled tables cannot be read as declared."""
    named = {(table.schema, table.table) for table in polled_relations(plan)}
    actual = {table.id: table for table in read_catalog(connection, tables=named)}
    if refusals := check_polled_sources(connection, plan, actual, read_names(connection)):
        raise refused(refusals)


def _without_missing(plan: Plan, actual: Collection[TableId], kept: Collection[str]) -> Plan:
    present = tuple(t for t in plan.tables if t.source not in kept or (t.schema, t.table) in actual)
    return replace(plan, tables=present)


def _check_keys(
    connection: Session,
    plan: Plan,
    actual: Mapping[TableId, SourceTable],
    kept: Collection[str],
) -> list[Refusal]:
    """Refuse keys that rows repeat, where no index prevents it; a large table is not searched."""
    refusals = []
    for table in plan.tables:
        if table.source in kept or not is_unenforced(table, actual[table.schema, table.table]):
            continue
        try:
            with connection.transaction():
                connection.execute(f"SET LOCAL statement_timeout = {_KEY_SEARCH_MS}")
                row = connection.execute(repeated_key(table)).fetchone()
        except Exception as error:
            if sqlstate(error) is None:
                raise
            continue  # no permission, a type without equality, or a timeout
        if row is not None:
            refusals.append(refuse_repeated(table, row))
    return refusals


def read_publication(connection: Session, name: str) -> PublicationState:
    """Read the pipeline's publication."""
    _refuse_before(connection, _HAS_SLOTS)
    row = connection.execute(queries.PUBLICATION, (name,)).fetchone()
    if row is None:
        return PublicationState()
    published = connection.execute(queries.PUBLISHED, (name,)).fetchall()
    tables: dict[TableId, ColumnList] = {
        (schema, table): None if columns is None else tuple(columns)
        for schema, table, columns, _ in published
    }
    filtered = frozenset(
        (schema, table) for schema, table, _, is_filtered in published if is_filtered
    )
    return PublicationState(True, row[0], row[1], tables, filtered)


def _execute(
    connection: Session,
    statements: Sequence[Statement],
    check: Callable[[], Sequence[Refusal]] = tuple,
) -> None:
    """Run all in one transaction with a short lock timeout, and retry if a lock is taken.

    Nothing is changed if `check`, which is called at its end, has reasons against it.
    """
    blocking = any(statement.blocks_writers for statement in statements)
    wait = _EXCLUSIVE_MS if blocking else _SHARED_MS
    for attempt in range(1, _LOCK_TRIES + 1):
        current = statements[0]
        try:
            with connection.transaction():
                connection.execute(f"SET LOCAL lock_timeout = {wait}")
                for current in statements:
                    connection.execute(current.sql)
                if refusals := check():
                    raise refused(refusals)
            return
        except Exception as error:
            refusal = _refused_to_set(current, error)
            if sqlstate(error) not in _LOCKED or attempt == _LOCK_TRIES:
                raise refusal from None
            time.sleep(_PAUSE_S)


def _refused_to_set(statement: Statement, error: Exception) -> InputError:
    """Return the error for PostgreSQL's refusal; raise any other error again."""
    if sqlstate(error) is None:
        raise error
    if sqlstate(error) in _LOCKED:
        return InputError(
            f"could not set the source's {statement.purpose}: a transaction keeps it locked",
            "end old transactions (see pg_stat_activity), and try again",
        )
    return InputError(
        f"the source refused to set {statement.purpose}: {reason_of(error)}",
        "grant the connecting user this privilege, or connect as a superuser",
    )


def refuse_another_owner(connection: Session, plan: Plan, owner: Owner) -> None:
    """Raise an error if slot, publication and role of the plan's name are not the owner's."""
    name = plan.source_object
    if refusals := check_owner(read_server(connection, name), name, owner):
        raise refused(refusals)


def leave_session(connection: Session, plan: Plan, owner: Owner) -> None:
    """Remove slot, publication, schema and role from the source; missing ones are ignored.

    Raises:
        InputError: if they are not the owner's; nothing is changed then
    """
    name = plan.source_object
    refuse_another_owner(connection, plan, owner)
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
            "stop the process that streams from it, and try again: an unread slot keeps WAL",
        )
    _execute(connection, [teardown.drop_publication(name)])
    _execute(connection, [unfollow_identity(), teardown.drop_schema()])
    _execute(connection, [teardown.drop_role(name)])
