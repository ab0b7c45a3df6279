"""The lake's side of a comparison, read with Spark or Trino by nothing but statements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from cdclake.iceberg.incomplete_rows import waiting_column
from cdclake.jobs.verify.compared_rows import Sums, sums_of
from cdclake.plan import Table
from cdclake.verify import normal
from cdclake.verify.columns import ComparedColumn
from cdclake.verify.compare import Row
from cdclake.verify.statements import Comparable

Ask = Callable[[str], Iterable[Sequence[Any]]]

_HASHES_PER_STATEMENT = 2000  # of at most 19 digits: Athena takes 262,144 bytes


@dataclass(frozen=True, slots=True)
class EngineRows:
    """Rows that an engine answers; numbers may be texts."""

    ask: Ask
    # By table: a SELECT of the rows whose values the view cannot look up. None: it can.
    incomplete_of: Callable[[Table], str] | None = None

    def sums(self, comparable: Comparable, buckets: int, only: int | None) -> Sums:
        """Return the sums of `Comparable.bucket_sums`."""
        return sums_of(self.ask(comparable.bucket_sums(buckets, only)))

    def rows_of_buckets(
        self, comparable: Comparable, buckets: int, wanted: list[int]
    ) -> Iterator[Row]:
        """Yield the rows in the wanted buckets, in order."""
        return self._rows(comparable, comparable.rows_of_buckets(buckets, wanted))

    def rows_of(self, comparable: Comparable, hashes: Iterable[int]) -> Iterator[Row]:
        """Yield the rows whose keys have these hashes."""
        rest = iter(hashes)
        while batch := list(islice(rest, _HASHES_PER_STATEMENT)):
            listed = ", ".join(map(str, batch))
            yield from self._rows(comparable, comparable.rows_of_hashes(listed))

    def incomplete(self, comparable: Comparable, table: Table) -> Iterator[Row]:
        """Yield the keys of rows that lack values, each with the name of a column."""
        if self.incomplete_of is None or not table.may_be_unsent:
            return
        key = tuple(column for column in comparable.columns if column.in_key)
        waiting = waiting_column(table)
        name = replace(key[0], name=waiting, lake=waiting, in_key=False, decode=normal.as_it_is)
        listed = Comparable(
            comparable.engine, f"({self.incomplete_of(table)}) AS listed", (*key, name)
        )
        yield from self._rows(listed, listed.rows_of_buckets(1, [0]))

    def _rows(self, comparable: Comparable, statement: str) -> Iterator[Row]:
        for hash_, key, *texts in self.ask(statement):
            yield Row(int(hash_), key, _decoded(comparable.columns, texts))


def _decoded(
    columns: Sequence[ComparedColumn], texts: Sequence[str | None]
) -> tuple[str | None, ...]:
    return tuple(
        None if text is None else column.decode(text)
        for column, text in zip(columns, texts, strict=True)
    )
