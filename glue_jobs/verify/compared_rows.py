"""The two sides of a comparison: what is asked of the source, and of an engine of the lake."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from cdclake.iceberg.dialect import Dialect
from cdclake.plan import Table
from cdclake.verify.compare import Row
from cdclake.verify.statements import Comparable

Place = tuple[int, str]  # hash of the key, and key
Sums = dict[int, tuple[int, int]]  # bucket -> rows, sum of their hashes


class SourceRows(Protocol):
    """Session in the source, or in what takes its place."""

    def locks_released(self) -> AbstractContextManager[None]:
        """Release, at the end of the block, the locks that its reads take; only in a snapshot."""

    def count(self, comparable: Comparable) -> int:
        """Return the number of rows."""

    def sums(self, comparable: Comparable, buckets: int, only: int | None) -> Sums:
        """Return the sums of `Comparable.bucket_sums`."""

    def rows_of_buckets(
        self, comparable: Comparable, buckets: int, wanted: list[int]
    ) -> Iterator[Row]:
        """Yield the rows in the wanted buckets, in order."""

    def rows_of(self, comparable: Comparable, places: Collection[Place]) -> Iterable[Row]:
        """Return the current rows of these keys, perhaps with rows of others."""


class LakeRows(Protocol):
    """Session of an engine that reads the lake."""

    def sums(self, comparable: Comparable, buckets: int, only: int | None) -> Sums:
        """Return the sums of `Comparable.bucket_sums`."""

    def rows_of_buckets(
        self, comparable: Comparable, buckets: int, wanted: list[int]
    ) -> Iterator[Row]:
        """Yield the rows in the wanted buckets, in order."""

    def rows_of(self, comparable: Comparable, hashes: Iterable[int]) -> Iterable[Row]:
        """Return the rows whose keys have these hashes."""

    def incomplete(self, comparable: Comparable, table: Table) -> Iterable[Row]:
        """Yield the keys of rows that lack values, each with the name of a column.

        Only an engine whose view cannot look up the values that a changed key kept has such rows.
        """


class LakeEngine(Protocol):
    """Engine that reads the lake; each `open` sees the current rows."""

    @property
    def name(self) -> str:
        """Name of the engine, as `--reader` has it."""

    @property
    def dialect(self) -> Dialect:
        """SQL dialect of the engine."""

    def relation(self, table: Table) -> str:
        """Return the qualified name of the table's `_current`."""

    def open(self, tables: Collection[Table]) -> AbstractContextManager[LakeRows]:
        """Open a session with the `_current` of these tables."""


def sums_of(rows: Iterable[Iterable[Any]]) -> Sums:
    """Return the sums by bucket, from the answer to `Comparable.bucket_sums`."""
    return {int(bucket): (int(count), int(total)) for bucket, count, total in rows}
