"""Work on one table in a batch, and the order of processing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from cdclake.jobs.stream.changelog_job import Ranges
from cdclake.jobs.stream.table_stream import Outcome, Portion, Replaced, TableStream


@dataclass(frozen=True, slots=True)
class Work:
    """One table's part of a batch."""

    stream: TableStream
    records: DataFrame
    ranges: Ranges
    apply_now: bool
    portion: Portion | None  # None: a gap, whose records have a job of their own

    def append(self, *, epoch: int, replaced: Replaced) -> Outcome:
        """Append the records to the changelog."""
        if self.portion is not None:
            return self.stream.append(self.portion, epoch=epoch, replaced=replaced)
        return self.stream.run(self.records, self.ranges, epoch=epoch, replaced=replaced)

    @property
    def size(self) -> int:
        """Upper bound of the number of records; transaction markers use offsets as well."""
        return sum(following - first for first, following in self.ranges.values())


def in_order(work: Sequence[Work]) -> list[Work]:
    """Sort by size, largest first."""
    return sorted(work, key=lambda item: -item.size)
