"""Compaction of states between batches of the stream.

A batch adds a data file and a delete file to a state, and looks up its keys in all of them.
`maintain_tables` runs once a day by default; until then each batch would cost more than the last.
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

# Compacting this many small batches costs about as much as they cost later batches until then.
COMPACT_EVERY_N_COMMITS = 30


class InlineCompaction:
    """Counter of each state's commits since its last compaction by this process."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._commits: Counter[str] = Counter()

    def note(self, table: str) -> None:
        """Count a commit to the table's state."""
        self._commits[table] += 1

    def chosen(self, plan: Plan) -> str | None:
        """Choose the due table with the most commits for compaction in this batch.

        One per batch, so that no batch is delayed by all of them. Tables that another tool
        maintains are left out.
        """
        ours = (table.name for table in plan.tables if table.maintenance == "own")
        gathered = {
            name: self._commits[name]
            for name in ours
            if self._commits[name] >= COMPACT_EVERY_N_COMMITS
        }
        return max(gathered, key=gathered.__getitem__, default=None)

    def compact(self, lake: LakeTables, plan: Plan, table: Table) -> None:
        """Compact the state; leave it for later if another job holds or changes it."""
        started = time.monotonic()
        history = timedelta(days=plan.history_days)
        upkeep = MaintainedTable(lake, table, table.name, datetime.now(UTC), history)
        if run_if_free(self._leases, table.name, partial(compact, upkeep)):
            del self._commits[table.name]
            log.info("%s: compacted in %.1f s", table.name, time.monotonic() - started)
