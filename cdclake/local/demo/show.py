"""What the demo tells while it runs: one interface, and plain lines for where no terminal is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from cdclake.local.demo.pipeline_stages import Look
from cdclake.local.demo.tasks import Stopwatch


class Show(Protocol):
    """A display of the running demo."""

    def open(self) -> AbstractContextManager[object]:
        """Shows itself as long as the block lasts."""

    def begin(self, step: str) -> None:
        """A step begins."""

    def end(self, step: str, detail: str = "") -> None:
        """A step has ended, and how."""

    def look(self, look: Look) -> None:
        """The hops as they are now."""


class PlainLines:
    """One line for each thing that happens, and one for each look."""

    def __init__(self, watch: Stopwatch, write: Callable[[str], None]) -> None:
        self._watch, self._write = watch, write

    def open(self) -> AbstractContextManager[object]:
        """Nothing to set up."""
        return nullcontext()

    def begin(self, step: str) -> None:
        """A line that a step begins."""
        self._watch.begin(step)
        self._line(f"{step} ...")

    def end(self, step: str, detail: str = "") -> None:
        """A line with what the step took."""
        seconds = self._watch.end(step)
        self._line(f"{step}: {seconds:.1f} s{'; ' if detail else ''}{detail}")

    def look(self, look: Look) -> None:
        """Every hop in a line."""
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
