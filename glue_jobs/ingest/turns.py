"""Which states a batch brings up: all, or under load only those that have waited longest.

`_current` shows the log's tail at once, whatever of it the state holds: so a stream that is late
writes its logs first, and merges many changes at once later.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable

from cdclake.plan import Plan

LONGEST_WAIT_S = 60.0  # as long as the load lasts; else every tail would grow with it


class ApplyTurns:
    """Remembers since when each table's state lacks something that its log holds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}
        self._busy_seconds = 0.0  # the last batch took that brought events of tables
        self._merging_seconds = 0.0  # the last batch took that brought a state up

    @property
    def waiting(self) -> frozenset[str]:
        """Tables whose state lacks something, or may: they need a turn even without new events."""
        return frozenset(self._since)

    def wait(self, tables: Iterable[str]) -> None:
        """These tables' states have to be brought up; who waits already waits since then."""
        for table in tables:
            self._since.setdefault(table, self._clock())

    def settle(self, table: str) -> None:
        """The table's state holds everything."""
        self._since.pop(table, None)

    def note_batch(self, *, busy: bool, merged: bool, seconds: float) -> None:
        """How long a batch took that brought events of tables, or brought a state up, or both."""
        if busy:
            self._busy_seconds = seconds
        if merged:
            self._merging_seconds = seconds

    def chosen(self, plan: Plan, flowing: frozenset[str], *, busy: bool) -> frozenset[str]:
        """Those of the `flowing` tables whose state this batch may bring up.

        A table that does not flow takes no turn: it would wait for ever in front of the others.

        A stream is late if a batch like this one lately took longer than the trigger. It then
        takes only those that have waited their time, a few in each batch, so that none pays for
        all.
        """
        like_this_one = max(self._busy_seconds, self._merging_seconds)
        if not busy or plan.mode == "scheduled" or like_this_one <= plan.trigger_seconds:
            return flowing
        longest = sorted(flowing & self.waiting, key=self._since.__getitem__)
        at_once = math.ceil(len(flowing) * self._busy_seconds / LONGEST_WAIT_S)
        due = self._clock() - LONGEST_WAIT_S
        return frozenset(table for table in longest[:at_once] if self._since[table] <= due)
