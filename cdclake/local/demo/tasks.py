"""Background tasks at low priority, and the stopwatch of the demo's steps."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
_NICENESS = 10


class Task(threading.Thread, Generic[T]):
    """Thread that runs `work` at low priority; processes that it starts inherit the priority.

    It is a daemon thread, so an interrupted demo does not wait for it.
    """

    def __init__(self, work: Callable[[], T]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._result: list[T] = []
        self._error: BaseException | None = None

    def run(self) -> None:
        """Run the work and keep its result or exception."""
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
            self._result.append(self._work())
        except BaseException as error:  # raised again by `result`
            self._error = error

    @property
    def done(self) -> bool:
        """True if there is a result or an exception."""
        return self.ident is not None and not self.is_alive()

    def result(self) -> T:
        """Wait for the result and return it; raise the exception of the work."""
        self.join()
        if self._error is not None:
            raise self._error
        return self._result[0]


class Stopwatch:
    """Start and end times of the demo's steps."""

    def __init__(self) -> None:
        self.started_at = time.time()
        self._started = time.monotonic()
        self.steps: dict[str, tuple[float, float | None]] = {}  # name -> begun, ended

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def begin(self, step: str) -> None:
        """Record the start of a step."""
        self.steps[step] = (self.elapsed, None)

    def end(self, step: str) -> float:
        """Record the end of a step and return its duration."""
        begun, _ = self.steps[step]
        self.steps[step] = (begun, self.elapsed)
        return self.elapsed - begun

    def seconds(self) -> dict[str, float]:
        """Return the duration of each finished step."""
        return {
            name: round(ended - begun, 1)
            for name, (begun, ended) in self.steps.items()
            if ended is not None
        }
