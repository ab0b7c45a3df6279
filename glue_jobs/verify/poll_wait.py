"""Wait of a deployed comparison for the next poll of polled tables, which their schedule starts."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from cdclake import naming
from cdclake.control_objects import PollProgress, poll_name
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.verify.rounds import Wait
from cdclake.plan import Table

_INTERVAL_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PollWait:
    """Wait for polled tables, next to that for tables whose changes come from the log."""

    control: ObjectStore
    streamed: Wait
    wait_s: float

    def wait(self, tables: Collection[Table], meanwhile: Callable[[], None]) -> Mapping[str, str]:
        """Wait until everything written before the call is in the lake.

        Returns the tables for which that is not known, with the reason.
        """
        polled = [table for table in tables if table.polling is not None]
        others = [table for table in tables if table.polling is None]
        begun, deadline = time.time() * 1e6, time.monotonic() + self.wait_s
        stopped = dict(self.streamed(others, meanwhile)) if others else {}
        while pending := [table for table in polled if self._read_at(table) < begun]:
            if time.monotonic() > deadline:
                return stopped | {table.name: self._late(table) for table in pending}
            meanwhile()
            time.sleep(_INTERVAL_S)
        return stopped

    def _read_at(self, table: Table) -> int:
        stored = self.control.read(poll_name(table.name))
        return 0 if stored is None else PollProgress.from_json(stored.content).read_at

    def _late(self, table: Table) -> str:
        assert table.polling is not None
        return (
            f"no poll has read the table within {self.wait_s:.0f} s ({table.polling.every}): start"
            f" the job {naming.POLL_JOB} during the comparison, or wait longer with --wait"
        )
