"""Work beside the display: threads that give way to the stream, and the steps that are timed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
_NICENESS = 10


class Task(threading.Thread, Generic[T]):
    """Runs `work` at low priority, which the processes that it starts inherit.

    A daemon: an interrupted demo does not wait for it.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._result: list[T] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        """The thread's work."""
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
            self._result.append(self._work())
        except BaseException as error:  # raised again where the result is asked for
            self._error = error

    @property
    def done(self) -> bool:
        """Whether there is a result or an error."""
        return self.ident is not None and not self.is_alive()

    def result(self) -> T:
        """Wait for the result; raises what the work raised."""
        self.join()
        if self._error is not None:
            raise self._error
        return self._result[0]


class Stopwatch:
    """Times the demo's steps from its start."""

    def __init__(self) -> None:
        self.started_at = time.time()
        self._started = time.monotonic()
        self.steps: dict[str, tuple[float, float | None]] = {}  # name -> begun, ended

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def begin(self, step: str) -> None:
        """A step begins."""
        self.steps[step] = (self.elapsed, None)

    def end(self, step: str) -> float:
        """A step ends; how long it took."""
        begun, _ = self.steps[step]
        self.steps[step] = (begun, self.elapsed)
        return self.elapsed - begun

    def seconds(self) -> dict[str, float]:
        """How long each finished step took."""
        return {
            name: round(ended - begun, 1)
            for name, (begun, ended) in self.steps.items()
            if ended is not None
        }
