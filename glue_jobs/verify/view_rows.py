"""Comparison of what two engines answer from `<t>_current`: DuckDB takes the source's place."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.verify.compared_rows import LakeEngine, Place, Sums
from cdclake.jobs.verify.first_pass import Sides, check_key
from cdclake.jobs.verify.lake_rows import DuckEngine
from cdclake.jobs.verify.report import Report
from cdclake.jobs.verify.table_results import comparable, first_passes, settle_tables
from cdclake.plan import Table
from cdclake.verify.columns import as_source, compared_columns
from cdclake.verify.compare import Row
from cdclake.verify.statements import Comparable


def compare_engines(
    reader: Reader, tables: Sequence[Table], engine: LakeEngine, sample: int | None = None
) -> Report:
    """Compare the engine's rows of these tables with DuckDB's.

    Each round opens DuckDB before the engine, and the engine may show any state of a row that
    DuckDB has shown since the round began.
    """
    started = time.monotonic()
    duck = DuckEngine(reader)
    sides, reports = comparable(tables, lambda each: _sides_of(each, duck, engine))
    source = ViewRows(duck, {each.source.relation: each.table for each in sides})
    with engine.open([each.table for each in sides]) as lake:
        passes, seconds = first_passes(sides, source, lake, sample)
    found, rounds = settle_tables(
        sides, passes, {}, source, engine, lambda _tables, _look: {}, lambda _table: None
    )
    for name, report in found.items():
        report.seconds = seconds[name]
    reports |= found
    return Report(
        tables=[reports[table.name] for table in tables],
        reader=engine.name,
        sample=sample,
        rounds=rounds,
        seconds=round(time.monotonic() - started, 2),
    )


def _sides_of(table: Table, duck: DuckEngine, engine: LakeEngine) -> Sides:
    plan = duck.reader.plan
    lengths = dict.fromkeys(column.source for column in table.columns)
    of_duck = as_source(compared_columns(table, plan, lengths))
    of_engine = compared_columns(table, plan, lengths, engine.dialect)
    check_key(table, of_engine, engine)
    return Sides(
        table,
        Comparable("duckdb", duck.relation(table), of_duck),
        Comparable(engine.dialect.engine, engine.relation(table), of_engine),
        (),
    )


@dataclass(frozen=True, slots=True)
class ViewRows:
    """DuckDB's rows in the place of the source's; each question sees the current ones."""

    duck: DuckEngine
    tables: dict[str, Table]  # by relation

    def locks_released(self) -> AbstractContextManager[None]:
        """Do nothing: DuckDB's reads lock nothing."""
        return nullcontext()

    def count(self, comparable: Comparable) -> int:
        """Return the number of rows."""
        return sum(rows for rows, _ in self.sums(comparable, 1, None).values())

    def sums(self, comparable: Comparable, buckets: int, only: int | None) -> Sums:
        """Return the sums of `Comparable.bucket_sums`."""
        with self.duck.open([self.tables[comparable.relation]]) as session:
            return session.sums(comparable, buckets, only)

    def rows_of_buckets(
        self, comparable: Comparable, buckets: int, wanted: list[int]
    ) -> Iterator[Row]:
        """Yield the rows in the wanted buckets, in order."""
        with self.duck.open([self.tables[comparable.relation]]) as session:
            yield from session.rows_of_buckets(comparable, buckets, wanted)

    def rows_of(self, comparable: Comparable, places: Collection[Place]) -> Iterator[Row]:
        """Yield the rows of these keys."""
        with self.duck.open([self.tables[comparable.relation]]) as session:
            yield from session.rows_of(comparable, (hash_ for hash_, _ in places))
