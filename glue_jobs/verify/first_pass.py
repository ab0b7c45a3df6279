"""First pass over one table: compare the sums of all buckets, then the rows of differing ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from cdclake.errors import APPLY_FILE, InputError
from cdclake.jobs.runtime.source import Connection
from cdclake.jobs.verify import source_rows
from cdclake.jobs.verify.compared_rows import LakeEngine, LakeRows, SourceRows, Sums
from cdclake.jobs.verify.mismatches import Mismatches
from cdclake.plan import Plan, Table
from cdclake.postgres.poll_queries import relation, search_path
from cdclake.postgres.published import as_named_now
from cdclake.verify import normal
from cdclake.verify.columns import ComparedColumn, compared_columns
from cdclake.verify.compare import differing
from cdclake.verify.statements import ROWS_PER_BUCKET, Comparable


@dataclass(frozen=True, slots=True)
class Sides:
    """One table in the source and in the lake."""

    table: Table
    source: Comparable
    lake: Comparable
    gone: tuple[str, ...]  # declared columns that are missing in the source: not compared


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstPass:
    """Result of the first pass over a table."""

    source_rows: int
    lake_rows: int
    compared_rows: int
    candidates: Mismatches


def sides_of(table: Table, plan: Plan, connection: Connection, engine: LakeEngine) -> Sides:
    """Return both sides of a table, as they are to be read."""
    lengths = source_rows.column_lengths(connection, table)
    if not lengths:
        raise InputError(
            f"the source has no table {table.source} that the connecting user may read",
            "if it was renamed or dropped, see `cdclake status` for the remedy",
        )
    named = as_named_now(table, lengths)
    columns = compared_columns(named, plan, lengths)
    of_engine = compared_columns(named, plan, lengths, engine.dialect)
    compared = {column.name for column in named.columns}
    if not compared.issuperset(table.key):
        raise InputError(
            f"{table.source} no longer has the column"
            f" {', '.join(sorted({*table.key} - compared))}, which is its key in the lake",
            f"remove the table from the file, {APPLY_FILE}, and add it again under another `name:`",
        )
    check_key(table, of_engine, engine)
    return Sides(
        table,
        Comparable("postgres", relation(table), columns, search_path(table, is_local=False)),
        Comparable(engine.dialect.engine, engine.relation(table), of_engine),
        tuple(column.source for column in table.columns if column.name not in compared),
    )


def check_key(table: Table, columns: tuple[ComparedColumn, ...], engine: LakeEngine) -> None:
    """Raise InputError if the engine cannot write a column of the key as the source does."""
    unordered = [c.name for c in columns if c.in_key and c.decode is not normal.as_it_is]
    if unordered:
        raise InputError(
            f"{engine.name} cannot compare {table.source} by its key"
            f" {', '.join(unordered)}: it has no text for that type",
            "compare the table with --reader duckdb",
        )


def first_pass(sides: Sides, source: SourceRows, lake: LakeRows, sample: int | None) -> FirstPass:
    """Compare the table, or about `sample` of its rows; both sides are read concurrently."""
    rows = source.count(sides.source)
    per_bucket = ROWS_PER_BUCKET if sample is None else max(1, sample)
    buckets = rows // per_bucket + 1
    only = None if sample is None or buckets == 1 else random.randrange(buckets)
    of_source, of_lake = _both(
        lambda: source.sums(sides.source, buckets, only),
        lambda: lake.sums(sides.lake, buckets, only),
    )
    looked_at = of_source.keys() | of_lake.keys() if only is None else {only}
    wanted = sorted(b for b in looked_at if of_source.get(b) != of_lake.get(b))
    return FirstPass(
        source_rows=sum(count for count, _ in of_source.values()),
        lake_rows=sum(count for count, _ in of_lake.values()),
        compared_rows=sum(of_source.get(bucket, (0, 0))[0] for bucket in looked_at),
        candidates=_candidates(sides, source, lake, buckets, wanted),
    )


def _candidates(
    sides: Sides, source: SourceRows, lake: LakeRows, buckets: int, wanted: list[int]
) -> Mismatches:
    if not wanted:
        return Mismatches(())
    return Mismatches(
        differing(
            source.rows_of_buckets(sides.source, buckets, wanted),
            lake.rows_of_buckets(sides.lake, buckets, wanted),
            sides.source.columns,
        )
    )


def _both(source: Callable[[], Sums], lake: Callable[[], Sums]) -> tuple[Sums, Sums]:
    with ThreadPoolExecutor(1) as pool:
        of_lake = pool.submit(lake)
        return source(), of_lake.result()
