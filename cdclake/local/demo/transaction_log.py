"""Kafka offsets and commit times of the shop's transactions, to compute the age of a batch."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field


@dataclass(slots=True)
class Ledger:
    """One table's commits: the topic's next offset after each, and the commit time."""

    offsets: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def add(self, offset: int, at: float) -> None:
        """Record a commit; the topic's next offset after it is `offset`."""
        self.offsets.append(offset)
        self.times.append(at)

    def ages(self, before: int, through: int, at: float) -> list[float]:
        """Return the ages, at time `at`, of the commits between two next offsets."""
        first, last = bisect_right(self.offsets, before), bisect_right(self.offsets, through)
        return [at - time for time in self.times[first:last]]
