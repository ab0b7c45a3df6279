"""Work on one table in a batch, and the order of processing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from cdclake.jobs.stream.table_batch import Ranges
from cdclake.plan import Table


@dataclass(frozen=True, slots=True)
class Work:
    """One table's share of a batch."""

    table: Table
    events: DataFrame
    ranges: Ranges
    apply_now: bool
    later: Sequence[tuple[DataFrame, Ranges]] = ()  # the rest of a gap that is too large at once
    may_sweep: bool = True  # with all these records the epoch's snapshot of the table is complete

    def steps(self) -> Iterator[Work]:
        """Yield the work that fits into memory at once, in order."""
        parts = ((self.events, self.ranges), *self.later)
        for number, (events, ranges) in enumerate(parts, start=1):
            may_sweep = self.may_sweep and number == len(parts)
            yield replace(self, events=events, ranges=ranges, later=(), may_sweep=may_sweep)

    @property
    def size(self) -> int:
        """Upper bound of the number of records; transaction markers use offsets as well."""
        return sum(following - first for first, following in self.ranges.values())


def in_order(work: Sequence[Work]) -> list[Work]:
    """Sort by size, largest first, with tables that are only appended to before the others."""
    return sorted(work, key=lambda turn: (turn.apply_now, -turn.size))
