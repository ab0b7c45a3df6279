"""Settings of a polled table: queries on a schedule find its changes, not Debezium in the log."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from cdclake import naming
from cdclake.schedule_times import rate_minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class Polling:
    """Polls of one table; they read rows that have changed since the poll before."""

    by: str  # lake name of the column that says when a row was written
    every: str  # schedule
    deletes: Literal["sweep", "none"] = "sweep"
    sweep_every: str = ""  # schedule of the polls that read the whole table; "": each one does
    overlap_minutes: int | None = None  # read again at each poll; None: as long as transactions ran
    query: str = ""  # SELECT to read instead of a table of the name
    reads: tuple[tuple[str, str], ...] = ()  # schema and name of each relation that it reads

    @property
    def schedule_name(self) -> str:
        """Return the schedule as a part of names; a digest of a cron schedule.

        >>> Polling(by="at", every="rate(5 minutes)").schedule_name
        'rate-5-minutes'
        """
        if rate_minutes(self.every) is None:
            return f"cron-{hashlib.sha256(self.every.encode()).hexdigest()[:8]}"
        return re.sub(r"[^a-z0-9]+", "-", self.every).strip("-")

    @property
    def run_name(self) -> str:
        """Return the name of the schedule's runs, and of their report."""
        return f"{naming.POLL_JOB}-{self.schedule_name}"

    @property
    def reads_changes(self) -> bool:
        """Return whether some polls read changed rows only; otherwise each one sweeps."""
        return self.deletes == "none" or bool(self.sweep_every)

    @staticmethod
    def from_raw(raw: Mapping[str, Any]) -> Polling:
        """Parse an entry of the plan's JSON."""
        reads = tuple((schema, name) for schema, name in raw["reads"])
        return Polling(**{**raw, "reads": reads})
