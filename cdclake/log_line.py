"""Lines of the components' logs, local or deployed, in the order of time."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True, order=True)
class LogLine:
    """Line of a log with the component that wrote it; lines sort by time."""

    at: datetime
    component: str
    text: str


class LogTail(Protocol):
    """Reader of one log."""

    def lines(self) -> Iterator[LogLine]:
        """Yield the lines that are new since the last call, in the order of time."""
        ...


def merged_lines(
    tails: Sequence[LogTail], *, follow: bool, poll_seconds: float
) -> Iterator[LogLine]:
    """Yield the lines of all logs in the order of time; with `follow` also those that come later.

    The order is that of one look at all logs: a line that arrives after a later one is not lost.
    """
    while True:
        yield from heapq.merge(*(tail.lines() for tail in tails))
        if not follow:
            return
        time.sleep(poll_seconds)
