"""How the rows of a polled table are read: by queries at intervals instead of from the log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Polling:
    """Polls of one table; they read rows that have changed since the poll before."""

    by: str  # lake name of the column that says when a row was written
    every: str  # schedule
    deletes: Literal["sweep", "none"] = "sweep"
    sweep_every: str = ""  # schedule of the polls that read the whole table; "": each one does
    overlap_minutes: int | None = None  # read again at each poll; None: as long as transactions ran
    query: str = ""  # SELECT to read instead of a table of the name
    reads: tuple[str, ...] = ()  # `schema.table` of what the query reads

    @property
    def schedule_name(self) -> str:
        """Return the schedule as a part of names.

        >>> Polling(by="at", every="rate(5 minutes)").schedule_name
        'rate-5-minutes'
        """
        return re.sub(r"[^a-z0-9]+", "-", self.every.lower()).strip("-")

    @staticmethod
    def from_raw(raw: Mapping[str, Any]) -> Polling:
        """Parse an entry of the plan's JSON."""
        return Polling(**{**raw, "reads": tuple(raw["reads"])})
