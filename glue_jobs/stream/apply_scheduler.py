"""Schedule of state updates: all states while they cost little, otherwise those due first.

`<t>_current` includes the tail, so readers see new rows before the state is applied. An update
costs about the same for few changes as for many, so one that waits for its `state_freshness` saves
those between. Updates are spread: otherwise all states would become due in the same batch and delay
the changelogs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from cdclake.jobs.stream.table_stream import TableStream
from cdclake.plan import Plan

SHARE = 0.05  # of the trigger interval, for state updates that could wait while events arrive


class ApplyScheduler:
    """Scheduler of state updates, by how long each state has been behind its changelog."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        # Duration of the last batch with table events, without applying; and time per state in the
        # last batch that applied any.
        self._logs_seconds = self._state_seconds = 0.0
        self._asked_at = clock()
        self._owed = 0.0  # state updates due since not all of them fit

    def wait(self, streams: Iterable[TableStream]) -> None:
        """Mark the tables' states as behind; a table that is waiting keeps its waiting time.

        Such a state is applied even without new events.
        """
        for stream in streams:
            if stream.schedule.behind_since is None:
                stream.schedule.behind_since = self._clock()

    def settle(self, stream: TableStream) -> None:
        """Mark the table's state as caught up."""
        stream.schedule.behind_since = None

    @staticmethod
    def behind_since(stream: TableStream) -> float | None:
        """Return since when the table's state has been behind, 0 if it is not.

        None if no batch updates the state.
        """
        if stream.table.delivery != "stream" or stream.table.apply != "each_batch":
            return None
        return stream.schedule.behind_since or 0.0

    def note_batch(self, *, busy: bool, seconds: float, states: int, merging: float) -> None:
        """Record a batch's duration; `busy` means that it had table events.

        It applied this number of `states`, which took `merging` of its seconds.
        """
        if busy:
            self._logs_seconds = seconds - merging
        if states:
            self._state_seconds = merging / states

    def chosen(
        self, plan: Plan, flowing: Iterable[TableStream], arriving: frozenset[str]
    ) -> frozenset[str]:
        """Choose the `flowing` tables whose states this batch applies.

        `arriving` are the tables with events in the batch. Stopped tables are left out: they would
        stay at the head of the queue.

        If all states that are behind fit into a small share of the trigger interval, and next to
        the changelogs, all are chosen. Otherwise as many as fit, those first whose
        `state_freshness` ends first, or more if needed to apply each within it. States that are
        behind for longer, since an update has at most so many events, take what is left of the
        interval. A batch without events applies states for up to a trigger interval, since new
        events may arrive.
        """
        streams = list(flowing)
        everything = frozenset(stream.table.name for stream in streams)
        if plan.mode == "scheduled":
            return everything
        elsewhere = frozenset(s.table.name for s in streams if s.table.apply != "each_batch")
        now = self._clock()
        waiting = {
            stream.table.name: stream.schedule.behind_since
            for stream in streams
            if stream.schedule.behind_since is not None
        }
        lacking = (everything - elsewhere) & (arriving | waiting.keys())
        # Only tables that were waiting: events after an hour of silence have not waited for it.
        allowed = {stream.table.name: stream.table.state_freshness for stream in streams}
        passed = now - self._asked_at
        self._owed += sum(passed / allowed[table] for table in lacking & waiting.keys())
        self._asked_at = now
        room = self._room(plan.trigger_seconds, is_busy=bool(arriving))
        if len(lacking) * self._state_seconds <= room:
            self._owed = 0.0
            return everything
        ends = {table: waiting.get(table, now) + allowed[table] for table in lacking}
        overdue = sum(end < now for end in ends.values())
        turns = self._turns(room, plan.trigger_seconds, overdue, is_busy=bool(arriving))
        return elsewhere | frozenset(sorted(ends, key=ends.__getitem__)[:turns])

    def _turns(self, room: float, trigger: float, overdue: int, *, is_busy: bool) -> int:
        """Return the number of states that a batch updates if not all fit."""
        fitting = int(room / self._state_seconds) if room > 0 else 0
        left = trigger - self._logs_seconds
        # At least one of the overdue states, unless the stream is late.
        overdue = min(overdue, max(1, int(left / self._state_seconds))) if left > 0 else 0
        turns = max(fitting, int(self._owed), overdue, 0 if is_busy else 1)
        self._owed = max(0.0, self._owed - turns)
        return turns

    def _room(self, trigger: float, *, is_busy: bool) -> float:
        """Return the seconds of a batch that state updates may take."""
        return min(SHARE * trigger, trigger - self._logs_seconds) if is_busy else trigger
