"""One table's share of a batch, and the order in which the shares are worked on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from cdclake.jobs.stream.table_batch import Ranges
from cdclake.plan import Table


@dataclass(frozen=True, slots=True)
class Work:
    """One table's turn in a batch."""

    table: Table
    events: DataFrame
    ranges: Ranges
    apply_now: bool

    @property
    def size(self) -> int:
        """How many records it has, at most: a transaction's end is an offset, too."""
        return sum(following - first for first, following in self.ranges.values())


def in_order(work: Sequence[Work]) -> list[Work]:
    """The largest first, but after those that only write their log: no state keeps them waiting."""
    return sorted(work, key=lambda turn: (turn.apply_now, -turn.size))
