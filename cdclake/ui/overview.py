"""Overview of a lake: the object of `status`, with the rate of every hop and marks of tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from datetime import UTC, datetime
from threading import Lock, Thread
from typing import Any, NamedTuple

from cdclake.ui.flow_hops import Counters, counters, flow_hops

_READ_AGAIN_S = 1.0  # several open pages share an answer
# Every batch finds events that wait; those that wait longer than this are shown as a lag.
MIN_LASTING_LAG_S = 4.0
_READ_WAIT_S = 4.0  # a component that has just died is waited for much longer
_OLDER = "the lake has not answered for some seconds; the figures are older"

Status = Mapping[str, Any]


class _Waiting(NamedTuple):
    """End of a table's topic at a time, which the stream had not read up to then."""

    end_offset: int
    since: float


class Overview:
    """Newest answer of `status`, and what the answers before it are needed for."""

    def __init__(
        self,
        read: Callable[[], Status],
        about: Mapping[str, Any],
        clock: Callable[[], float] = time.monotonic,
        *,
        with_components: Callable[[Status], Status] | None = None,
        lasting_lag_s: float = MIN_LASTING_LAG_S,
    ) -> None:
        """Take what reads `status`, and what reads only the components again."""
        self._read, self._about, self._clock = read, about, clock
        self._with_components = with_components
        self._reading: Future[Status] | None = None
        self._status: Status = {}
        self._read_at: float | None = None
        self._before: tuple[float, Counters | None] = (0.0, None)
        self._lasting_lag_s = lasting_lag_s
        self._waiting: dict[str, _Waiting] = {}
        self._answer: dict[str, Any] = {}
        self._lock = Lock()

    def answer(self) -> dict[str, Any]:
        """Return the answer; it is read again if it is older than a second.

        If the reading takes long, return the answer before, with the components as they are now.
        """
        with self._lock:
            if self._reading is None:
                if self._read_at is not None and self._clock() - self._read_at < _READ_AGAIN_S:
                    return self._answer
                self._reading = _in_background(self._read)
            if self._with_components is not None and self._status:
                wait([self._reading], _READ_WAIT_S)
                if not self._reading.done():
                    return self._late(self._with_components(self._status))
            reading, self._reading = self._reading, None
            self._status = reading.result()
            self._answer = self._of(self._status, self._clock())
            self._read_at = self._clock()
            return self._answer

    def _late(self, status: Status) -> dict[str, Any]:
        hops = flow_hops(status, counters(status), None, 0)
        attention = [*status["attention"], _OLDER]
        return {**self._answer, **status, "tables": self._answer["tables"], "hops": hops,
                "attention": attention}  # fmt: skip

    def _of(self, status: Status, now: float) -> dict[str, Any]:
        found = counters(status)
        read_at, before = self._before
        self._before = (now, found)
        return {
            **status,
            **self._about,
            "read_at": datetime.now(UTC).isoformat(timespec="seconds"),
            "hops": flow_hops(status, found, before, now - read_at),
            "tables": [{**t, "marks": list(self._marks(t, now))} for t in status["tables"]],
        }

    def _marks(self, table: Mapping[str, Any], now: float) -> Iterator[str]:
        """Yield what deserves a look in this table."""
        yield from (state for state in ("stopped", "unknown") if table["state"] == state)
        if (table["quarantined"] or 0) > (table["withheld"] or 0):
            yield "quarantine"
        if self._lags(table, now):
            yield "lag"
        if table["last_verified"] is None:
            yield "unverified"
        elif not table["last_verified"]["equal"]:
            yield "differs"
        if table["last_error"]:
            yield "error"
        if table.get("source_changes") or table.get("relation_changes"):
            yield "schema"

    def _lags(self, table: Mapping[str, Any], now: float) -> bool:
        """Return True if events that were there so long ago have not been read since."""
        name, end = table["table"], table["end_offset"] or 0
        read = end - (table["lag_events"] or 0)
        waiting = self._waiting.get(name)
        if waiting is None or read >= waiting.end_offset:
            waiting = self._waiting[name] = _Waiting(end, now)
        return read < waiting.end_offset and now - waiting.since >= self._lasting_lag_s


def _in_background(read: Callable[[], Status]) -> Future[Status]:
    """Start to read in a thread that does not keep the process alive."""
    reading: Future[Status] = Future()

    def run() -> None:
        try:
            reading.set_result(read())
        except Exception as error:
            reading.set_exception(error)

    Thread(target=run, daemon=True).start()
    return reading
