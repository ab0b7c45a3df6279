"""Packing states while they stream: each batch opens what the ones before it have left.

A batch adds a file of rows and a file of deletes to a state, and looks its keys up in all of them.
`maintain_tables` comes once a day by default: until then batches would cost more and more.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial

from cdclake.jobs.control.leases import Leases
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.maintenance.actions import MaintainedTable, compact
from cdclake.jobs.stream.inline_maintenance import run_if_free
from cdclake.plan import Plan, Table

log = logging.getLogger("cdclake.stream")

# To pack so many small batches costs about what they cost each other until then.
COMPACT_EVERY_N_COMMITS = 30


class InlineCompaction:
    """Remembers how many commits each state has gathered since this process began or packed it."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._commits: Counter[str] = Counter()

    def note(self, table: str) -> None:
        """One more commit to the table's state."""
        self._commits[table] += 1

    def chosen(self, plan: Plan) -> str | None:
        """The table to be packed in this batch: of those that are due the one with most commits.

        One at a time, so that no batch ends late for all of them. What others maintain is theirs.
        """
        ours = (table.name for table in plan.tables if table.maintenance == "own")
        gathered = {
            name: self._commits[name]
            for name in ours
            if self._commits[name] >= COMPACT_EVERY_N_COMMITS
        }
        return max(gathered, key=gathered.__getitem__, default=None)

    def compact(self, lake: LakeTables, plan: Plan, table: Table) -> None:
        """Pack the table's state; one that another job holds, or changes meanwhile, comes later."""
        started = time.monotonic()
        history = timedelta(days=plan.history_days)
        upkeep = MaintainedTable(lake, table, table.name, datetime.now(UTC), history)
        if run_if_free(self._leases, table.name, partial(compact, upkeep)):
            del self._commits[table.name]
            log.info("%s: packed in %.1f s", table.name, time.monotonic() - started)
