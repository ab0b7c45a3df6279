"""Steps of a running command and the progress of each, for a display.

The code that does the work names its steps; without a listener that costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """How far a step has come; a total of None is not known."""

    done: int = 0
    total: int | None = None
    unit: str = "rows"
    size: int | None = None  # in bytes
    now: str = ""  # what is being done or awaited


@dataclass(slots=True)
class Step:
    """Step of a command: when it began and ended, and its progress."""

    name: str
    begun: float = field(default_factory=time.monotonic)
    ended: float | None = None
    advance: Advance | None = None
    _first: tuple[float, int] | None = None

    def note(self, advance: Advance) -> None:
        """Note the progress of the step."""
        if self._first is None or advance.done < self._first[1]:
            self._first = (time.monotonic(), advance.done)
        self.advance = advance

    def seconds(self) -> float:
        """Return for how long the step has been running, or ran."""
        return (time.monotonic() if self.ended is None else self.ended) - self.begun

    def per_second(self) -> float | None:
        """Return the rate since the first note; None if nothing has advanced since."""
        if self.advance is None or self._first is None:
            return None
        elapsed, done = time.monotonic() - self._first[0], self.advance.done - self._first[1]
        return done / elapsed if elapsed > 0 and done > 0 else None

    def seconds_left(self) -> float | None:
        """Return the time to the total at the present rate; None if either is not known."""
        rate, advance = self.per_second(), self.advance
        if rate is None or advance is None or advance.total is None or advance.done == 0:
            return None
        return max(0.0, advance.total - advance.done) / rate


class Listener(Protocol):
    """Display of the steps; any thread may call it."""

    def begin(self, step: Step) -> None:
        """Show a step that begins, and its progress from then on."""

    def end(self, step: Step) -> None:
        """Show a step that has ended."""


_listeners: list[Listener | None] = [None]


@contextmanager
def listening(listener: Listener | None) -> Iterator[None]:
    """Send the steps of the block to this listener; with None to nothing."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.pop()


@contextmanager
def step(name: str) -> Iterator[Step]:
    """Run the block as a step with this name."""
    begun, listener = Step(name), _listeners[-1]
    if listener is not None:
        listener.begin(begun)
    try:
        yield begun
    finally:
        begun.ended = time.monotonic()
        if listener is not None:
            listener.end(begun)


def is_shown() -> bool:
    """Return True if a listener shows the steps."""
    return _listeners[-1] is not None


class Sampler:
    """Reader of a figure that costs something: reads it only if steps are shown, and seldom."""

    def __init__(self, shown: Step, read: Callable[[], Advance | None], every_s: float) -> None:
        self._step, self._read, self._every_s = shown, read, every_s
        self._next = time.monotonic()

    def sample(self) -> None:
        """Note the figure if it is due."""
        if not is_shown() or time.monotonic() < self._next:
            return
        if (advance := self._read()) is not None:
            self._step.note(advance)
        self._next = time.monotonic() + self._every_s
