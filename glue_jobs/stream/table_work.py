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

    def steps(self) -> Iterator[Work]:
        """Yield the work that fits into memory at once, in order."""
        for events, ranges in ((self.events, self.ranges), *self.later):
            yield replace(self, events=events, ranges=ranges, later=())

    @property
    def size(self) -> int:
        """Upper bound of the number of records; transaction markers use offsets as well."""
        return sum(following - first for first, following in self.ranges.values())


def in_order(work: Sequence[Work]) -> list[Work]:
    """Sort by size, largest first, with tables that are only appended to before the others."""
    return sorted(work, key=lambda turn: (turn.apply_now, -turn.size))
