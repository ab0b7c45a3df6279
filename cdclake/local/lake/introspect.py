"""Introspection of a database for `init`: its tables, and key candidates of those without a key."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import psycopg

from cdclake.errors import InputError
from cdclake.jobs.runtime.source import Connection, connect
from cdclake.naming import SOURCE_SCHEMA, source_object
from cdclake.plan import Plan
from cdclake.postgres.candidates import Key, candidate_keys, first_unique, uniqueness_query
from cdclake.postgres.catalog import SourceTable, TableId
from cdclake.postgres.pipeline_text import pipeline_name
from cdclake.postgres.proposal import Proposal, flowing_columns, needs_candidate
from cdclake.postgres.propose import is_proposable, propose
from cdclake.postgres.refusal import Refusal
from cdclake.postgres.server import check_settings, settings_warnings
from cdclake.postgres.source import read_catalog, read_server

# Limits the load on the server: a guess does not justify a long query.
_LOOK = "SET LOCAL statement_timeout = '15s'"
_MAX_ROWS = 20_000_000


def introspect_tables(dsn: str, schemas: Sequence[str] | None) -> tuple[str, list[Proposal]]:
    """Return the database's name and a proposal for each table (None: of all schemas)."""
    with connect(dsn) as connection:
        database, version = connection.info.dbname, connection.info.server_version
        if schemas is not None:
            _check_schemas(connection, schemas)
        tables = [t for t in read_catalog(connection, schemas=schemas) if is_proposable(t)]
        guessed = _guess_keys(connection, tables)
    if not tables:
        where = f"the schemas {', '.join(schemas)}" if schemas else f"the database {database}"
        raise InputError(f"{where} has no table", "check --from-db and --schema")
    return database, propose(tables, pipeline_name(database), guessed, version)


def introspect_undeclared(
    dsn: str, plan: Plan, patterns: Sequence[str]
) -> tuple[list[SourceTable], list[Proposal]]:
    """Return the tables that the plan does not declare, and proposals for those of the patterns.

    No proposal has a lake name or a topic that a table of the plan has.
    """
    with connect(dsn) as connection:
        found = [table for table in read_catalog(connection) if is_proposable(table)]
        declared = {table.source for table in plan.all_tables}
        undeclared = [table for table in found if table.source not in declared]
        matching = [table for table in undeclared if _matches(table, patterns)]
        guessed = _guess_keys(connection, matching)
        version = connection.info.server_version
    return undeclared, propose(matching, plan.name, guessed, version, declared=plan.all_tables)


def _matches(table: SourceTable, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(table.source, pattern) for pattern in patterns)


def server_problems(dsn: str) -> list[Refusal]:
    """Return what must or should be set in the server before `up` streams from it."""
    with connect(dsn) as connection:
        state = read_server(connection, source_object(connection.info.dbname))
    return [*check_settings(state), *settings_warnings(state)]


def _check_schemas(connection: Connection, schemas: Sequence[str]) -> None:
    rows = connection.execute(
        "SELECT nspname::text FROM pg_namespace"
        " WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' ORDER BY 1"
    )
    known = [row[0] for row in rows if row[0] != SOURCE_SCHEMA]
    missing = [schema for schema in schemas if schema not in known]
    if missing:
        raise InputError(
            f"the database has no schema {', '.join(map(repr, missing))}",
            f"use the exact name of one of these with --schema: {', '.join(known)}",
        )


def _guess_keys(connection: Connection, tables: Sequence[SourceTable]) -> dict[TableId, Key]:
    found = {t.id: _guess_key(connection, t) for t in tables if needs_candidate(t)}
    return {table: key for table, key in found.items() if key is not None}


def _guess_key(connection: Connection, table: SourceTable) -> Key | None:
    """Return a candidate key without duplicates; None if there is none, or it was not checked."""
    candidates = candidate_keys(table, flowing_columns(table))
    if not candidates or table.rows > _MAX_ROWS:
        return None
    try:
        with connection.transaction():
            connection.execute(_LOOK)
            counts = connection.execute(uniqueness_query(table, candidates)).fetchone()
    except psycopg.Error:  # no permission, or a timeout: propose no key
        return None
    assert counts is not None
    return first_unique(candidates, counts)
