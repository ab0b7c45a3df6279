"""Search path of polled queries, which the pipeline's role gets from the login that prepares.

Polls of a lake that streams read as that role. With the server's default path they would not find
an extension's operators, and `=` of two citext columns would be that of text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdclake.plan import Plan
from cdclake.postgres import poll_queries, queries
from cdclake.postgres.quoting import identifier
from cdclake.postgres.refusal import Refusal
from cdclake.postgres.session import Session
from cdclake.postgres.statement import Statement


@dataclass(frozen=True, slots=True)
class QuerySchema:
    """Schema of the path: the row of `queries.QUERY_SCHEMAS`, in its order."""

    name: str
    is_usable: bool  # by the pipeline's role
    is_grantable: bool  # by the session's user
    user: str  # the session's


def read_query_schemas(connection: Session, plan: Plan) -> tuple[QuerySchema, ...] | None:
    """Return the schemas of the session's search path in order; None if no query is polled."""
    query = next((table for table in plan.polled if table.is_query), None)
    if query is None:
        return None
    with connection.transaction():  # the search path ends with it
        connection.execute(poll_queries.search_path(query))
        found = connection.execute(queries.QUERY_SCHEMAS, (plan.source_object,)).fetchall()
    return tuple(QuerySchema(*row) for row in found)


def check_query_schemas(connection: Session, plan: Plan) -> list[Refusal]:
    """Return a refusal for each schema that would be missing in the role's path.

    PostgreSQL leaves out a schema that the role may not use, without an error.
    """
    return [
        Refusal(
            f"schema {schema.name}",
            f"polled queries find names in it by the search_path of {schema.user}, who may not"
            f" let the role {plan.source_object} use it",
            f"run as its owner: GRANT USAGE ON SCHEMA {identifier(schema.name)} TO"
            f" {identifier(schema.user)} WITH GRANT OPTION; or take it out of the search_path",
        )
        for schema in read_query_schemas(connection, plan) or ()
        if not (schema.is_usable or schema.is_grantable)
    ]


def set_query_schemas(
    role: str, database: str, schemas: Sequence[QuerySchema] | None
) -> list[Statement]:
    """Return the statements that let the role find names as the session's user does."""
    if schemas is None:
        return []
    name = identifier(role)
    path = ", ".join(["pg_catalog", *(identifier(schema.name) for schema in schemas)])
    return [
        *(
            Statement(
                f"names in {schema.name}",
                f"GRANT USAGE ON SCHEMA {identifier(schema.name)} TO {name}",
            )
            for schema in schemas
            if not schema.is_usable
        ),
        Statement(
            "the search path of its polls",
            f"ALTER ROLE {name} IN DATABASE {identifier(database)} SET search_path = {path}",
        ),
    ]
