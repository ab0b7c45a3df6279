"""Queries in Athena, with the workgroup of the deployment, as `cdclake sql --engine athena`."""

from __future__ import annotations

from cdclake.deployed.athena import WorkgroupClient
from cdclake.errors import InputError
from cdclake.query_answer import Answer


def run_athena_query(workgroup: str, database: str, query: str) -> Answer:
    """Run one query and return its answer; values are Athena's texts.

    Raises InputError with Athena's message if it refuses the query.
    """
    client = WorkgroupClient(workgroup)
    execution = client.start(query, database)
    error = client.await_end(execution)
    if error is not None:
        raise InputError(f"Athena refused the query: {error}", "fix the query, then run it again")
    columns, rows = client.results(execution)
    return Answer(tuple((each["name"], each["type"]) for each in columns), list(rows))
