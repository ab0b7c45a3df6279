"""How long the parts of a piece of work took: for the job's log, where whoever is on call looks."""

from __future__ import annotations

import time


class StageTimer:
    """A stopwatch with named laps, shown as `decode 0.4 s, append 0.2 s`."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._laps: list[tuple[str, float]] = []

    def end(self, name: str) -> None:
        """The lap that began with the last one's end."""
        now = time.monotonic()
        self._laps.append((name, now - self._begun))
        self._begun = now

    def __str__(self) -> str:
        return ", ".join(f"{name} {seconds:.2f} s" for name, seconds in self._laps)
