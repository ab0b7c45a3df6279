"""Search path of polled queries, which the pipeline's role gets from the login that prepares.

Polls of a lake that streams read as that role. With the server's default path they would not find
an extension's operators, and `=` of two citext columns would be that of text. PostgreSQL leaves out
a schema that the role may not use, without an error, so the rights of the role are checked.
"""

from __future__ import annotations

from collections.abc import Sequence

from cdclake.plan import Plan
from cdclake.postgres import poll_queries, queries
from cdclake.postgres.quoting import identifier
from cdclake.postgres.session import Session
from cdclake.postgres.statement import Statement


def read_query_schemas(connection: Session, plan: Plan) -> tuple[str, ...] | None:
    """Return the schemas of the session's search path in order; None if no query is polled."""
    query = next((table for table in plan.polled if table.is_query), None)
    if query is None:
        return None
    with connection.transaction():  # the search path ends with it
        connection.execute(poll_queries.search_path(query))
        return tuple(row[0] for row in connection.execute(queries.QUERY_SCHEMAS))


def set_search_path(role: str, database: str, schemas: Sequence[str]) -> Statement:
    """Return the statement that lets the role find names as the session's user does."""
    path = ", ".join(["pg_catalog", *(identifier(schema) for schema in schemas)])
    return Statement(
        "the search path of its polls",
        f"ALTER ROLE {identifier(role)} IN DATABASE {identifier(database)}"
        f" SET search_path = {path}",
    )
