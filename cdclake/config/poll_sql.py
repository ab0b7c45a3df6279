"""Analysis of the query of a poll: one SELECT, and the relations that it reads."""

from __future__ import annotations

from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from cdclake.config.problems import Refused

_DIALECT = "postgres"


def relations_of(query: str) -> tuple[tuple[str, str], ...]:
    """Return schema and name of each relation that the query reads, in order.

    Raises Refused if it is not one SELECT, or names a relation without its schema.
    """
    try:
        parsed = sqlglot.parse(query, read=_DIALECT)
    except SqlglotError as error:
        first = str(error).splitlines()[0]
        raise Refused(
            f"the query is not SQL of PostgreSQL: {first}", "write one SELECT that psql runs"
        ) from None
    statements = [each for each in parsed if each is not None]
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise Refused("the query is not one SELECT", "write one SELECT statement")
    return tuple(dict.fromkeys(_relations(statements[0])))


def _relations(query: exp.Query) -> list[tuple[str, str]]:
    named = {cte.alias for cte in query.find_all(exp.CTE)}
    found = []
    for table in query.find_all(exp.Table):
        if not table.name or (not table.db and table.name in named):
            continue
        if not table.db:
            raise Refused(
                f"the query reads {table.name!r} without its schema",
                f"write it with its schema, like `public.{table.name}`",
            )
        found.append((_spelled(table.args["db"]), _spelled(table.this)))
    return found


def _spelled(name: Any) -> str:
    """Return the name as PostgreSQL reads it: in lowercase unless it is quoted."""
    is_quoted = bool(name.args.get("quoted"))
    return str(name.name) if is_quoted else str(name.name).lower()
