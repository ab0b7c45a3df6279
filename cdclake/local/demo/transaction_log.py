"""Which transaction is at which place in Kafka, so that the age of a batch is known at once."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field


@dataclass(slots=True)
class Ledger:
    """One table's commits: after each, the next offset in its topic, and when that was."""

    offsets: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def add(self, offset: int, at: float) -> None:
        """Note a commit after which the topic's next offset is `offset`."""
        self.offsets.append(offset)
        self.times.append(at)

    def ages(self, before: int, through: int, at: float) -> list[float]:
        """How old, at `at`, the commits between two next offsets were."""
        first, last = bisect_right(self.offsets, before), bisect_right(self.offsets, through)
        return [at - time for time in self.times[first:last]]
