"""Queries in Athena, with the workgroup of the deployment, as `cdclake sql --engine athena`."""

from __future__ import annotations

import re

from cdclake.deployed.athena import WorkgroupClient
from cdclake.errors import InputError
from cdclake.query_answer import Answer

# Blanks and comments, which end where Athena ends them: the groups are possessive.
_BLANK = r"(?>--[^\r\n]*|/\*.*?\*/|\s)*+"
_ANALYZE = rf"analyze\b{_BLANK}(?:verbose\b{_BLANK})?"
_OPTIONS = rf"\(\s*(?:format|type)\b[\w\s,]*\){_BLANK}"
# The first word of a statement decides, since Athena takes one statement at a time. EXPLAIN ANALYZE
# executes what follows.
_READS = re.compile(
    rf"{_BLANK}(?:explain\b{_BLANK}(?:{_ANALYZE})?(?:{_OPTIONS})?)?"
    rf"(?:\({_BLANK})*+(?:select|with|values|table|show|describe|desc)\b",
    re.I | re.S,
)


def run_athena_query(workgroup: str, database: str, query: str) -> Answer:
    """Run one query and return its answer; values are Athena's texts.

    Raises InputError if the statement may write, or with Athena's message if it refuses the query.
    """
    if not _READS.match(query):
        raise InputError(
            "the query is not a read-only statement",
            "use SELECT, WITH, VALUES, SHOW, DESCRIBE or EXPLAIN of one of them; only jobs write"
            " the lake",
        )
    client = WorkgroupClient(workgroup)
    execution = client.start(query, database)
    error = client.await_end(execution)
    if error is not None:
        raise InputError(f"Athena refused the query: {error}", "fix the query, then run it again")
    columns, rows = client.results(execution)
    return Answer(tuple((each["name"], each["type"]) for each in columns), list(rows))
