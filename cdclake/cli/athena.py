"""Statements in Athena, run by the deployment's workgroup."""

from __future__ import annotations

import time
from typing import Any

import boto3

from cdclake.cli.aws_calls import explained

_POLL_S = 0.5
_ENDED = {"SUCCEEDED", "FAILED", "CANCELLED"}


class WorkgroupClient:
    """Client of the deployment's workgroup, which sets the result location and the scan limit."""

    def __init__(self, name: str) -> None:
        self.name = name
        with explained(name, "reach Athena for"):
            self._athena = boto3.client("athena")

    def run(self, statement: str) -> str | None:
        """Run the statement to its end; return the error, or None if it succeeded."""
        with explained(self.name, "run a statement in the workgroup"):
            started = self._athena.start_query_execution(QueryString=statement, WorkGroup=self.name)
        status = self._await_end(started["QueryExecutionId"])
        if status["State"] == "SUCCEEDED":
            return None
        return str(status.get("StateChangeReason") or status["State"])

    def _await_end(self, query: str) -> dict[str, Any]:
        while True:
            with explained(self.name, f"follow the query {query} (which continues) in"):
                found = self._athena.get_query_execution(QueryExecutionId=query)
            status: dict[str, Any] = found["QueryExecution"]["Status"]
            if status["State"] in _ENDED:
                return status
            time.sleep(_POLL_S)
