"""Compaction of states between batches of the stream.

A batch adds a data file and a delete file to a state, and looks up its keys in all of them.
`maintain_tables` runs once a day by default; until then each batch would cost more than the last.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial

from cdclake.jobs.control.leases import Leases
from cdclake.jobs.maintenance.actions import MaintainedTable, compact
from cdclake.jobs.stream.inline_maintenance import run_if_free
from cdclake.jobs.stream.table_stream import TableStream

log = logging.getLogger("cdclake.stream")

# Compacting this many small batches costs about as much as they cost later batches until then.
COMPACT_EVERY_N_COMMITS = 30


class InlineCompaction:
    """Scheduler of compactions by each state's commits since the last one."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases

    def note(self, stream: TableStream) -> None:
        """Count a commit to the table's state."""
        stream.schedule.state_commits += 1

    def chosen(self, streams: Iterable[TableStream]) -> TableStream | None:
        """Choose the due table with the most commits for compaction in this batch.

        One per batch, so that no batch is delayed by all of them. Tables that another tool
        maintains are left out.
        """
        due = [
            stream
            for stream in streams
            if stream.table.maintenance == "own"
            and stream.schedule.state_commits >= COMPACT_EVERY_N_COMMITS
        ]
        return max(due, key=lambda stream: stream.schedule.state_commits, default=None)

    def compact(self, stream: TableStream) -> None:
        """Compact the state; leave it for later if another job holds or changes it."""
        started, table = time.monotonic(), stream.table
        upkeep = MaintainedTable(stream.lake, table, table.name, datetime.now(UTC))
        if run_if_free(self._leases, table.name, partial(compact, upkeep)):
            stream.schedule.state_commits = 0
            seconds = time.monotonic() - started
            log.info("%s: compacted in %.1f s", table.name, seconds, extra={"table": table.name})
