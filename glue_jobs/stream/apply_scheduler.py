"""Which states a batch brings up: all, or under load only those that have waited longest.

`_current` shows the log's tail at once, whatever of it the state holds: so a stream that is late
writes its logs first, and merges many changes at once later. It does so evenly: states that were
all left until they had waited long enough would be due at once, and logs would wait for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from cdclake.plan import Plan

# In so long each state has one turn, however late the stream is; else tails would grow with load.
MAX_APPLY_DELAY_S = 180.0


class ApplyScheduler:
    """Remembers since when each table's state lacks something that its log holds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}
        # What the last batch that brought events of tables took without states; and what one state
        # took of the last batch that brought some up.
        self._logs_seconds = self._state_seconds = 0.0
        self._asked_at = clock()
        self._owed = 0.0  # turns, since the stream is late

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
            self._logs_seconds = seconds - merging
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
        longest; or more, whether they fit or not, so that each has its turn in time. A batch
        without events brings states up, too, but for no longer than the trigger: there may be
        events again.
        """
        if plan.mode == "scheduled":
            return flowing
        elsewhere = frozenset(t.name for t in plan.tables if t.apply != "each_batch") & flowing
        lacking = (flowing - elsewhere) & (arriving | self.waiting)
        now = self._clock()
        # Not of what arrives after an hour's silence: nobody has waited for it.
        self._owed += len(lacking & self.waiting) * (now - self._asked_at) / MAX_APPLY_DELAY_S
        self._asked_at = now
        room = plan.trigger_seconds - (self._logs_seconds if arriving else 0.0)
        if len(lacking) * self._state_seconds <= room:
            self._owed = 0.0
            return flowing
        fitting = int(room / self._state_seconds) if room > 0 else 0
        turns = max(fitting, int(self._owed), 0 if arriving else 1)
        self._owed = max(0.0, self._owed - turns)
        longest = sorted(lacking, key=lambda table: self._since.get(table, now))
        return elsewhere | frozenset(longest[:turns])
