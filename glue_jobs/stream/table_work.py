"""Work on one table in a batch, and the order of processing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    may_sweep: bool = True  # with these records the epoch's snapshot of the table is complete

    @property
    def size(self) -> int:
        """Upper bound of the number of records; transaction markers use offsets as well."""
        return sum(following - first for first, following in self.ranges.values())


def in_order(work: Sequence[Work]) -> list[Work]:
    """Sort by size, largest first, with tables that are only appended to before the others."""
    return sorted(work, key=lambda turn: (turn.apply_now, -turn.size))
