"""Steps of a measure that takes longer than a sitting: each is kept until the last is there."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


class Unfinished(Exception):
    """The time is up before a step; the next command goes on with it."""


@dataclass(slots=True)
class Steps:
    """Results of one measure's steps by the same code, as JSON in a file of the measure's."""

    file: Path
    code: str  # its digest
    until: float = float("inf")  # by the monotonic clock: no step but the first begins later
    _taken: int = field(default=0, init=False)  # by this process

    def take(self, step: str, measure: Callable[[], Any]) -> Any:
        """Return what the step gave, now or for an earlier command of the same code.

        Raise Unfinished if it would begin too late.
        """
        kept = self._kept()
        if step not in kept:
            if self._taken and time.monotonic() >= self.until:
                raise Unfinished(step)
            kept[step] = measure()
            self._taken += 1
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_text(json.dumps({"code": self.code, "steps": kept}))
        return kept[step]

    def end(self) -> None:
        """Remove the file: the measure has been written."""
        self.file.unlink(missing_ok=True)

    def _kept(self) -> dict[str, Any]:
        if not self.file.exists():
            return {}
        stored: dict[str, Any] = json.loads(self.file.read_text())
        steps: dict[str, Any] = stored["steps"]
        return steps if stored.get("code") == self.code else {}
