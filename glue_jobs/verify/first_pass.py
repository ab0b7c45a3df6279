"""First pass over one table: compare the sums of all buckets, then the rows of differing ones."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import duckdb

from cdclake.errors import InputError
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.runtime.source import Connection
from cdclake.jobs.verify import lake_rows, source_rows
from cdclake.jobs.verify.mismatches import Mismatches
from cdclake.naming import current_name
from cdclake.plan import Plan, Table
from cdclake.postgres.poll_queries import relation
from cdclake.postgres.published import as_named_now
from cdclake.verify.columns import compared_columns
from cdclake.verify.compare import differing
from cdclake.verify.statements import ROWS_PER_BUCKET, Comparable

Sums = dict[int, tuple[int, int]]  # bucket -> rows, sum of their hashes


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


def sides_of(table: Table, plan: Plan, connection: Connection) -> Sides:
    """Return both sides of a table, as they are to be read."""
    lengths = source_rows.column_lengths(connection, table)
    if not lengths:
        raise InputError(
            f"the source has no table {table.source} that the connecting user may read",
            "if it was renamed or dropped, see `cdclake status` for the remedy",
        )
    named = as_named_now(table, lengths)
    columns = compared_columns(named, plan, lengths)
    compared = {column.name for column in named.columns}
    if not compared.issuperset(table.key):
        raise InputError(
            f"{table.source} no longer has the column"
            f" {', '.join(sorted({*table.key} - compared))}, which is its key in the lake",
            "remove the table from the file, run `cdclake up FILE`, and add it again under another"
            " `name:`",
        )
    view = f"{DUCKDB.name(plan.lake_database)}.{DUCKDB.name(current_name(table.name))}"
    return Sides(
        table,
        Comparable("postgres", relation(table), columns),
        Comparable("duckdb", view, columns),
        tuple(column.source for column in table.columns if column.name not in compared),
    )


def first_pass(
    sides: Sides, source: Connection, lake: duckdb.DuckDBPyConnection, sample: int | None
) -> FirstPass:
    """Compare the table, or about `sample` of its rows; both sides are read concurrently."""
    rows = source_rows.count(source, sides.source)
    per_bucket = ROWS_PER_BUCKET if sample is None else max(1, sample)
    buckets = rows // per_bucket + 1
    only = None if sample is None or buckets == 1 else random.randrange(buckets)
    of_source, of_lake = _both(
        lambda: _sums(source.execute(sides.source.bucket_sums(buckets, only)).fetchall()),
        lambda: _sums(lake.execute(sides.lake.bucket_sums(buckets, only)).fetchall()),
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
    sides: Sides,
    source: Connection,
    lake: duckdb.DuckDBPyConnection,
    buckets: int,
    wanted: list[int],
) -> Mismatches:
    if not wanted:
        return Mismatches(())
    return Mismatches(
        differing(
            source_rows.ordered_rows(source, sides.source.rows_of_buckets(buckets, wanted)),
            lake_rows.ordered_rows(lake, sides.lake.rows_of_buckets(buckets, wanted)),
            sides.source.columns,
        )
    )


def _sums(rows: Iterable[tuple[int, int, int]]) -> Sums:
    return {int(bucket): (int(count), int(total)) for bucket, count, total in rows}


def _both(source: Callable[[], Sums], lake: Callable[[], Sums]) -> tuple[Sums, Sums]:
    with ThreadPoolExecutor(1) as pool:
        of_lake = pool.submit(lake)
        return source(), of_lake.result()
