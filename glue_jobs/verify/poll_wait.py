"""Waits of a comparison: for polled tables by polls, and for the others by the stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cdclake import naming
from cdclake.jobs.control.poll_state import read_poll, read_poll_error
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.table_jobs.deployment_jobs import DeploymentJobs
from cdclake.jobs.verify.not_arrived import NotArrived
from cdclake.jobs.verify.rounds import Wait
from cdclake.plan import Table

_INTERVAL_S = 5.0


def with_polls(streamed: Wait, polled: Wait) -> Wait:
    """Return a `Wait` that asks `polled` for polled tables, and `streamed` for the others."""

    def wait(tables: Collection[Table], meanwhile: Callable[[], None]) -> Mapping[str, NotArrived]:
        by_poll = [table for table in tables if table.polling is not None]
        others = [table for table in tables if table.polling is None]
        stopped = dict(streamed(others, meanwhile)) if others else {}
        return stopped | (dict(polled(by_poll, meanwhile)) if by_poll else {})

    return wait


def failed_polls(lines: Iterable[Mapping[str, Any]]) -> dict[str, NotArrived]:
    """Return the tables that a poll has failed to read, by the lines of its job's report."""
    return {line["table"]: NotArrived(line["error"]) for line in lines if line["error"]}


@dataclass(frozen=True, slots=True)
class StartedPolls:
    """Polls that the comparison starts, by the deployment's job."""

    jobs: DeploymentJobs

    def wait(
        self, tables: Collection[Table], meanwhile: Callable[[], None]
    ) -> Mapping[str, NotArrived]:
        """Poll these tables; return those that failed, with the error."""
        del meanwhile  # the poll waits for its job
        report = self.jobs.run_over(naming.POLL_JOB, [table.name for table in tables])
        return failed_polls(report["tables"])


@dataclass(frozen=True, slots=True)
class NextPoll:
    """Wait for the next poll of tables, which another process starts."""

    control: ObjectStore
    wait_s: float

    def wait(
        self, tables: Collection[Table], meanwhile: Callable[[], None]
    ) -> Mapping[str, NotArrived]:
        """Wait until a poll has read each table since the call.

        Returns the tables that none has read in time, with the reason.
        """
        begun, deadline = time.time() * 1e6, time.monotonic() + self.wait_s
        while pending := [table for table in tables if self._read_at(table) < begun]:
            if time.monotonic() > deadline:
                return {table.name: NotArrived(self._late(table)) for table in pending}
            meanwhile()
            time.sleep(_INTERVAL_S)
        return {}

    def _read_at(self, table: Table) -> int:
        found = read_poll(self.control, table)
        return 0 if found is None else found.read_at

    def _late(self, table: Table) -> str:
        return read_poll_error(self.control, table) or (
            f"no poll has read the table within {self.wait_s:.0f} s: wait longer with --wait"
        )
