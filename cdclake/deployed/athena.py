"""Statements in Athena, run by the deployment's workgroup."""

from __future__ import annotations

import time
from typing import Any

import boto3

from cdclake.deployed.aws_calls import explained

_POLL_S = 0.5
_FAILED = {"FAILED", "CANCELLED"}


class WorkgroupClient:
    """Client of the deployment's workgroup, which sets the result location and the scan limit."""

    def __init__(self, name: str) -> None:
        self.name = name
        with explained(name, "reach Athena for"):
            self._athena = boto3.client("athena")

    def run(self, statement: str) -> str | None:
        """Run the statement to its end; return the error, or None if it succeeded."""
        return self.await_end(self.start(statement))

    def start(self, statement: str, database: str | None = None) -> str:
        """Start the statement; return the id of its execution."""
        context = {"QueryExecutionContext": {"Database": database}} if database else {}
        with explained(self.name, "run a statement in the workgroup"):
            started = self._athena.start_query_execution(
                QueryString=statement, WorkGroup=self.name, **context
            )
        return str(started["QueryExecutionId"])

    def results(self, query: str) -> tuple[list[dict[str, str]], list[list[str | None]]]:
        """Return columns and rows of a query that has succeeded; every value is Athena's text."""
        columns: list[dict[str, str]] = []
        rows: list[list[str | None]] = []
        with explained(self.name, f"read the result of the query {query} in"):
            pages = self._athena.get_paginator("get_query_results")
            for number, page in enumerate(pages.paginate(QueryExecutionId=query)):
                found = page["ResultSet"]
                if number == 0:
                    info = found["ResultSetMetadata"]["ColumnInfo"]
                    columns = [{"name": each["Name"], "type": each["Type"]} for each in info]
                rows += [[value.get("VarCharValue") for value in r["Data"]] for r in found["Rows"]]
        # The answer of a SELECT begins with the names; that of SHOW or DESCRIBE does not.
        has_header = rows[:1] == [[each["name"] for each in columns]]
        return columns, rows[1:] if has_header else rows

    def await_end(self, query: str) -> str | None:
        """Wait until the query has ended; return the error, or None if it succeeded."""
        while True:
            with explained(self.name, f"follow the query {query} (which continues) in"):
                found = self._athena.get_query_execution(QueryExecutionId=query)
            status: dict[str, Any] = found["QueryExecution"]["Status"]
            if status["State"] == "SUCCEEDED":
                return None
            if status["State"] in _FAILED:
                return str(status.get("StateChangeReason") or status["State"])
            time.sleep(_POLL_S)
