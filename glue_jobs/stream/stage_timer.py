"""Durations of the stages of a piece of work, for the job's log."""

from __future__ import annotations

import time


class StageTimer:
    """Stopwatch with named stages, shown as `decode 0.4 s, append 0.2 s`."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._stages: list[tuple[str, float]] = []

    def end(self, name: str) -> None:
        """End the current stage and record its duration."""
        now = time.monotonic()
        self._stages.append((name, now - self._begun))
        self._begun = now

    def __str__(self) -> str:
        return ", ".join(f"{name} {seconds:.2f} s" for name, seconds in self._stages)
