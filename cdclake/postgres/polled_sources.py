"""Comparison of what polls read with the declarations: tables, views, and results of queries."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cdclake.plan import Plan, Table
from cdclake.postgres import poll_queries, queries
from cdclake.postgres.admission import check_polled, check_result, refuse_foreign
from cdclake.postgres.catalog import SourceTable, TableId, read_result
from cdclake.postgres.refusal import Refusal
from cdclake.postgres.session import Session, reason_of, sqlstate

# Classes of SQLSTATE: not supported, invalid value, and syntax, names or rights.
_OF_THE_QUERY = ("0A", "22", "42")


def polled_relations(plan: Plan) -> list[Table]:
    """Return the polled tables that are read from a table or view, not by a query."""
    return [table for table in plan.polled if not table.is_query]


def check_polled_sources(
    connection: Session,
    plan: Plan,
    actual: Mapping[TableId, SourceTable],
    known: Collection[TableId],
) -> list[Refusal]:
    """Return the reasons why the plan's polled tables cannot be read as they are declared.

    `actual`: the tables and views of `polled_relations`; `known`: the source's names, to suggest.
    """
    refusals: list[Refusal] = []
    for table in plan.polled:
        if table.is_query:
            refusals += check_query(connection, table)
        else:
            refusals += check_polled(table, actual.get((table.schema, table.table)), known)
    return refusals + [each for table in plan.polled for each in check_foreign(connection, table)]


def check_query(connection: Session, table: Table) -> list[Refusal]:
    """Return the declared columns that differ from those of the table's query."""
    try:
        found = result_types(connection, table)
    except Exception as error:
        if not (sqlstate(error) or "").startswith(_OF_THE_QUERY):
            raise
        return [
            Refusal(
                table.source,
                f"PostgreSQL refuses its query: {reason_of(error)}",
                "correct `query:`, or grant what is missing; names outside the search_path of the"
                " login need their schema",
            )
        ]
    columns = read_result(connection.execute(queries.RESULT_COLUMNS, found))
    return check_result(table, {column.name: column for column in columns})


def result_types(connection: Session, table: Table) -> tuple[list[str], list[int], list[int]]:
    """Return names, types and modifiers of the columns that the query returns, without running it.

    PostgreSQL returns the base type of a domain.
    """
    with connection.transaction():  # the search path ends with it
        connection.execute(poll_queries.search_path(table))
        result = connection.execute(poll_queries.no_rows(table))
        names = [column.name for column in result.description]
        places = range(len(names))
        types = [result.pgresult.ftype(place) for place in places]
        modifiers = [result.pgresult.fmod(place) for place in places]
    return names, types, modifiers


def check_foreign(connection: Session, table: Table) -> list[Refusal]:
    """Return a refusal for each foreign table whose late rows the polls of a table would miss."""
    if table.poll.overlap_minutes is not None or not table.poll.reads_changes:
        return []
    read = table.poll.reads if table.is_query else ((table.schema, table.table),)
    names = ([schema for schema, _ in read], [name for _, name in read])
    found = connection.execute(queries.FOREIGN_TABLES, names).fetchall()
    return [refuse_foreign(table, f"{schema}.{name}") for schema, name in found]
