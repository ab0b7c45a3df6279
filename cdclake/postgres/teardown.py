"""SQL that removes everything of cdclake from a source; the user's tables stay unchanged."""

from __future__ import annotations

from cdclake.naming import SOURCE_SCHEMA
from cdclake.postgres.prepare import HEARTBEAT, SIGNAL
from cdclake.postgres.quoting import identifier, literal
from cdclake.postgres.statement import Statement


def end_sessions(name: str) -> Statement:
    """Return the statement that ends the role's sessions, including the slot's reader."""
    return Statement(
        "our sessions",
        f"DO $do$ BEGIN IF EXISTS (SELECT FROM pg_stat_activity WHERE usename = {literal(name)})"
        f" THEN {_membership(name)}"
        f" PERFORM pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = {literal(name)}"
        " AND pid <> pg_backend_pid(); END IF; END $do$",
    )


def _membership(name: str) -> str:
    """Return the statement that grants membership of the role.

    Ending its sessions and dropping its objects needs membership, which since PostgreSQL 16 even
    the role's creator lacks.
    """
    return (
        f"IF NOT pg_has_role(current_user, {literal(name)}, 'USAGE') THEN"
        f" EXECUTE 'GRANT {identifier(name)} TO CURRENT_USER'; END IF;"
    )


def drop_slot(name: str) -> Statement:
    """Return the statement that drops an existing, unread slot, which would retain WAL forever."""
    return Statement(
        "the replication slot",
        "SELECT pg_drop_replication_slot(slot_name)"
        " FROM pg_replication_slots"
        f" WHERE slot_name = {literal(name)} AND database = current_database() AND NOT active",
    )


def drop_publication(name: str) -> Statement:
    """Return the statement that drops the publication; `drop_schema` checks for others."""
    return Statement("the publication", f"DROP PUBLICATION IF EXISTS {identifier(name)}")


def drop_schema() -> Statement:
    """Return the statement that drops cdclake's schema, unless it is still used.

    Another pipeline may stream it, or other objects may be in it. There is no CASCADE, since other
    objects must not be dropped with it.
    """
    schema = literal(SOURCE_SCHEMA)
    return Statement(
        "our schema",
        "DO $do$ BEGIN"
        f" IF NOT EXISTS (SELECT FROM pg_publication_tables WHERE schemaname = {schema}) THEN"
        f" DROP TABLE IF EXISTS {HEARTBEAT}, {SIGNAL};"
        f" IF NOT EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        f" WHERE n.nspname = {schema})"
        f" AND NOT EXISTS (SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace"
        f" WHERE n.nspname = {schema}) THEN"
        f" DROP SCHEMA IF EXISTS {identifier(SOURCE_SCHEMA)}; END IF;"
        " END IF; END $do$",
    )


def drop_role(name: str) -> Statement:
    """Return the statement that drops the role with all its privileges in this database."""
    role, quoted = identifier(name), literal(name)
    return Statement(
        "our role",
        f"DO $do$ BEGIN IF EXISTS (SELECT FROM pg_roles WHERE rolname = {quoted}) THEN"
        f" {_membership(name)}"
        f" DROP OWNED BY {role}; DROP ROLE {role};"
        " END IF; END $do$",
    )
