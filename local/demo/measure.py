"""What the lake's own metadata and logs say about the run, once it is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import duckdb

from cdclake import naming
from cdclake.iceberg.dialect import DUCKDB
from cdclake.plan import Table
from glue_jobs.runtime.stamps import ChangesStamp
from local.demo.freshness import Appended, Freshness, ages, first_visible, freshness
from local.lake import Lake
from local.reader.catalog import IcebergTable
from local.reader.duck import lake_reader

SNAPSHOT_OP = "r"


@dataclass(frozen=True, slots=True)
class Seen:
    """One table's events in the log, by operation, without those of the first snapshot."""

    inserts: int
    updates: int
    deletes: int


@dataclass(frozen=True, slots=True)
class Measured:
    """The run in figures; times in milliseconds since 1970, None where nothing arrived."""

    seen: Mapping[str, Seen]
    freshness: Freshness
    first_row_ms: int | None
    last_row_ms: int | None


def measure(lake: Lake) -> Measured:
    """Read every log once, and the commit times of the snapshots that appended to it."""
    reader = lake_reader(lake)
    seen: dict[str, Seen] = {}
    shares: list[tuple[float, int]] = []
    moments: list[int] = []
    with reader.open(lake.plan.tables) as session:
        for table in lake.plan.tables:
            streamed, by_op = _appends(session, table, lake.plan.lake_database)
            visible = _visible(reader.catalog.load(table.changes))
            shares += ages(streamed, visible)
            moments += visible.values()
            seen[table.name] = Seen(by_op["c"], by_op["u"], by_op["d"])
    return Measured(seen, freshness(shares), min(moments, default=None), max(moments, default=None))


def _appends(
    session: duckdb.DuckDBPyConnection, table: Table, database: str
) -> tuple[list[Appended], Counter[str]]:
    """The streamed rows by append and transaction, and how many there are of each operation."""
    query = (
        f"SELECT {naming.OP}, epoch_us({naming.INGESTED_AT}), epoch_us({naming.COMMITTED_AT}),"
        f" count(*) FROM {DUCKDB.name(database)}.{DUCKDB.name(table.changes)}"
        f" WHERE {naming.OP} <> {DUCKDB.text(SNAPSHOT_OP)} AND {naming.PARTITION} >= 0"
        " GROUP BY ALL"
    )
    appends, by_op = [], Counter[str]()
    for op, ingested_at, committed_at, rows in session.execute(query).fetchall():
        appends.append(Appended(ingested_at, committed_at, rows))
        by_op[op] += rows
    return appends, by_op


def _visible(log: IcebergTable) -> dict[int, int]:
    return first_visible(
        (ChangesStamp.from_json(snapshot.stamp).ingested_through, snapshot.committed_ms)
        for snapshot in log.snapshots.values()
        if snapshot.stamp is not None
    )
