"""Databases of the embedded PostgreSQL."""

from __future__ import annotations

from typing import Any

import psycopg

from cdclake.local.lake.lake import LakeState
from cdclake.local.lake.stack import Endpoints
from cdclake.plan import Plan


def create_database(server: str, name: str) -> None:
    """Create the database on the embedded server, unless it exists."""
    with psycopg.connect(server, autocommit=True) as connection:
        if not _has_database(connection, name):
            connection.execute(
                psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(name))
            )


def existing_database(endpoints: Endpoints, plan: Plan, before: LakeState) -> str:
    """Return the embedded server's database for the pipeline; "" is the server's default database.

    It is the declared database if that exists: `up --no-stream` creates it, so that a later
    pipeline file finds the tables that were created there. A lake that has streamed keeps its own.
    """
    if endpoints.source is None or (before.epoch and before.database):
        return before.database
    with psycopg.connect(endpoints.source.dsn(), autocommit=True) as connection:
        return plan.source_database if _has_database(connection, plan.source_database) else ""


def _has_database(connection: psycopg.Connection[Any], name: str) -> bool:
    found = connection.execute("SELECT FROM pg_database WHERE datname = %s", (name,))
    return found.fetchone() is not None
