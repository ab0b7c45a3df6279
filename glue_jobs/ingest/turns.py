"""Which states a batch brings up: all, or under load only those that have waited longest.

`_current` shows the log's tail at once, whatever of it the state holds: so a stream that is late
writes its logs first, and merges many changes at once later.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable

from cdclake.plan import Plan

LONGEST_WAIT_S = 180.0  # as long as the load lasts; else every tail would grow with it


class ApplyTurns:
    """Remembers since when each table's state lacks something that its log holds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}
        # Of the last batch that brought events of tables: all of it, and what it took without
        # states. Of the last one that brought states up: what one took.
        self._busy_seconds = self._logs_seconds = self._state_seconds = 0.0

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

    def note_batch(self, *, busy: bool, seconds: float, states: int, merging: float) -> None:
        """How long a batch took, `busy` with events of tables or not.

        It brought so many states up, which took `merging` of its seconds.
        """
        if busy:
            self._busy_seconds, self._logs_seconds = seconds, seconds - merging
        if states:
            self._state_seconds = merging / states

    def chosen(
        self, plan: Plan, flowing: frozenset[str], arriving: frozenset[str]
    ) -> frozenset[str]:
        """Those of the `flowing` tables whose state this batch may bring up.

        `arriving` are the tables of which it has events. A table that does not flow takes no turn:
        it would wait for ever in front of the others.

        All of them, if the logs and all states that lack something fit into the trigger. Else the
        stream is late, and takes as many as fit beside the logs, those first that have waited
        longest; and a few in each batch of those that have waited their time, whether they fit or
        not, so that none pays for all.
        """
        if not arriving or plan.mode == "scheduled":
            return flowing
        elsewhere = frozenset(t.name for t in plan.tables if t.apply != "each_batch") & flowing
        lacking = (flowing - elsewhere) & (arriving | self.waiting)
        room = plan.trigger_seconds - self._logs_seconds
        if len(lacking) * self._state_seconds <= room:
            return flowing
        now = self._clock()
        longest = sorted(lacking, key=lambda table: self._since.get(table, now))
        fitting = int(room / self._state_seconds) if room > 0 else 0
        owed = math.ceil(len(lacking) * self._busy_seconds / LONGEST_WAIT_S)
        due = [t for t in longest[:owed] if now - self._since.get(t, now) >= LONGEST_WAIT_S]
        return elsewhere | frozenset(longest[: max(fitting, len(due))])
