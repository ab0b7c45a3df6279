"""Figures of a finished run, from the lake's metadata and changelogs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb

from cdclake import naming
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp
from cdclake.jobs.reader.catalog import CatalogTable
from cdclake.jobs.reader.tail import added_files
from cdclake.local.demo.freshness import Appended, Freshness, ages, first_visible, freshness
from cdclake.local.lake.lake import LocalLake
from cdclake.local.reader.duck import lake_reader
from cdclake.plan import Table

SNAPSHOT_OP = "r"
Aged = tuple[list[tuple[float, int]], Counter[str]]  # (age in ms, rows), and rows by operation


@dataclass(frozen=True, slots=True)
class EventCounts:
    """One table's changelog events by operation, without those of the initial snapshot."""

    inserts: int
    updates: int
    deletes: int


@dataclass(frozen=True, slots=True)
class Measured:
    """Figures of a run; times in milliseconds since 1970, None if nothing arrived."""

    seen: Mapping[str, EventCounts]
    freshness: Freshness
    first_row_ms: int | None
    last_row_ms: int | None

    def figures(self, started_at: float, opened_at: float) -> dict[str, Any]:
        """Return the figures that the command reports; None where nothing was streamed.

        Args:
            started_at: When the command started, in seconds since 1970.
            opened_at: When the source began to change.
        """
        first, last, events = self.first_row_ms, self.last_row_ms, self.freshness.rows
        spent = None if last is None or not events else max(1.0, last / 1000 - opened_at)
        return {
            "events": events,
            "events_per_s": None if spent is None else round(events / spent, 1),
            "freshness_p50_ms": self.freshness.p50_ms,
            "freshness_p95_ms": self.freshness.p95_ms,
            "seconds_to_first_row": None if first is None else round(first / 1000 - started_at, 1),
        }


def measure(lake: LocalLake) -> Measured:
    """Read each changelog once, and the commit times of the snapshots that appended to it."""
    reader = lake_reader(lake)
    seen: dict[str, EventCounts] = {}
    shares: list[tuple[float, int]] = []
    moments: list[int] = []
    with reader.open(lake.plan.tables) as session:
        for table in lake.plan.tables:
            log = reader.catalog.load(table.changes)
            if table.delivery == "firehose":
                files = added_files(session, log)
                aged, by_op = _delivered(session, files)
                moments += files.values()
            else:
                visible = _visible(log)
                aged, by_op = _streamed(session, table, lake.plan.lake_database, visible)
                moments += visible.values()
            shares += aged
            seen[table.name] = EventCounts(by_op["c"], by_op["u"], by_op["d"])
    return Measured(seen, freshness(shares), min(moments, default=None), max(moments, default=None))


def _streamed(
    session: duckdb.DuckDBPyConnection, table: Table, database: str, visible: Mapping[int, int]
) -> Aged:
    rows = f"{DUCKDB.name(database)}.{DUCKDB.name(table.changes)}"
    changes = _changes(session, rows, f"epoch_us({naming.INGESTED_AT})")
    return ages((Appended(*change[1:]) for change in changes), visible), _by_op(changes)


def _delivered(session: duckdb.DuckDBPyConnection, visible: Mapping[str, int]) -> Aged:
    """Read the files as Firehose appended them, even if they have been compacted since."""
    if not visible:
        return [], Counter()
    listed = ", ".join(DUCKDB.text(file) for file in visible)
    changes = _changes(session, f"read_parquet([{listed}], filename = true)", "filename")
    return ages((Appended(*change[1:]) for change in changes), visible), _by_op(changes)


def _changes(
    session: duckdb.DuckDBPyConnection, rows: str, append: str
) -> list[tuple[str, Any, int, int]]:
    """Return (operation, append, commit time, number of rows) of the streamed changes."""
    query = (
        f"SELECT {naming.OP}, {append}, epoch_us({naming.COMMITTED_AT}), count(*) FROM {rows}"
        f" WHERE {naming.OP} <> {DUCKDB.text(SNAPSHOT_OP)} AND {naming.PARTITION} >= 0"
        " GROUP BY ALL"
    )
    return session.execute(query).fetchall()


def _by_op(changes: Iterable[tuple[str, Any, int, int]]) -> Counter[str]:
    by_op = Counter[str]()
    for op, _, _, rows in changes:
        by_op[op] += rows
    return by_op


def _visible(log: CatalogTable) -> dict[int, int]:
    return first_visible(
        (ChangesStamp.from_json(snapshot.stamp).ingested_through, snapshot.committed_ms)
        for snapshot in log.snapshots.values()
        if snapshot.stamp is not None
    )
