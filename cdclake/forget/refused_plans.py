"""Reasons to refuse an erasure before anything is touched: places that it would not reach."""

from __future__ import annotations

from collections.abc import Iterator

from cdclake.errors import InputError
from cdclake.plan import Plan, Table


def check_erasable(plan: Plan, table: Table) -> None:
    """Raise InputError if rows of the table are copied to where `forget` cannot erase them."""
    for reason, remedy in _reasons(plan, table):
        raise InputError(f"forget would leave copies of rows of {table.name}: {reason}", remedy)


def is_erasable(plan: Plan, table: Table) -> bool:
    """Check whether `forget` can erase rows of the table."""
    return next(_reasons(plan, table), None) is None


def _reasons(plan: Plan, table: Table) -> Iterator[tuple[str, str]]:
    if table.is_query:
        yield (
            "its rows are the result of a query, so PostgreSQL declares no types for its keys",
            "erase the rows that the query reads, and remove the table from the file",
        )
    sinks = [each.name for each in plan.connectors]
    if sinks:
        yield (
            f"the connector {sinks[0]} may copy its events to a system outside of the lake",
            "erase the row there, remove the connector from the file, and run the command again",
        )
    if table.maintenance == "glue":
        yield (
            "Glue maintains it, and keeps older snapshots by itself",
            "declare `maintenance: own` for the table",
        )
