"""Display of the running demo: its interface, and plain lines for output without a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from cdclake.local.demo.pipeline_stages import Look
from cdclake.local.demo.tasks import Stopwatch


class Show(Protocol):
    """Display of the running demo."""

    def open(self) -> AbstractContextManager[object]:
        """Return a context manager that displays the demo."""

    def begin(self, step: str) -> None:
        """Show that a step begins."""

    def end(self, step: str, detail: str = "") -> None:
        """Show that a step has ended, with its result."""

    def look(self, look: Look) -> None:
        """Show the current progress through the pipeline."""


class PlainLines:
    """Display with one line per step and per look."""

    def __init__(self, watch: Stopwatch, write: Callable[[str], None]) -> None:
        self._watch, self._write = watch, write

    def open(self) -> AbstractContextManager[object]:
        """Return a context manager that does nothing."""
        return nullcontext()

    def begin(self, step: str) -> None:
        """Write that a step begins."""
        self._watch.begin(step)
        self._line(f"{step} ...")

    def end(self, step: str, detail: str = "") -> None:
        """Write the step's duration and result."""
        seconds = self._watch.end(step)
        self._line(f"{step}: {seconds:.1f} s{'; ' if detail else ''}{detail}")

    def look(self, look: Look) -> None:
        """Write the progress through all stages in one line."""
        fresh = "-" if look.freshness_s is None else f"{look.freshness_s:.1f} s"
        slowest = "" if look.slowest_s is None else f" (slowest {look.slowest_s:.1f} s)"
        self._line(
            f"source {look.written} rows ({look.rate:.0f}/s, {look.transactions} transactions)"
            f" | kafka {sum(hop.in_kafka for hop in look.hops)}"
            f" | lake {sum(hop.in_lake for hop in look.hops)}, lag {look.lag}"
            f" | batch {look.batch}: {look.batch_events} in {look.batch_seconds:.1f} s"
            f" | fresh {fresh}{slowest}"
        )

    def _line(self, text: str) -> None:
        self._write(f"{self._watch.elapsed:6.1f} s  {text}")


@contextmanager
def step(show: Show, name: str) -> Iterator[list[str]]:
    """Display a step; the texts appended to the yielded list become its detail."""
    said: list[str] = []
    show.begin(name)
    yield said
    show.end(name, "; ".join(said))
