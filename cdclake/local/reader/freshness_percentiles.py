"""Percentiles of the freshness of a table's rows, from its changelog and its snapshots' stamps."""

from __future__ import annotations

import duckdb

from cdclake import naming
from cdclake.debezium.position import SNAPSHOT_PHASE
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp
from cdclake.jobs.reader.catalog import CatalogTable
from cdclake.plan import Table

_WINDOW_MS = 3_600_000
_NAMES = ("freshness_p50_s", "freshness_p95_s")


def freshness_percentiles(
    session: duckdb.DuckDBPyConnection, log: CatalogTable, table: Table
) -> dict[str, float | None]:
    """Return the 50th and 95th percentile over the streamed rows of the last hour that had any.

    Both are None without such rows, and for a table that Firehose writes: its commits have no
    stamps.
    """
    visible = _visible(log)
    row = None
    if visible:
        shown = ", ".join(f"({ingested}, {ms})" for ingested, ms in visible.items())
        row = session.execute(
            f"SELECT quantile_disc(s.shown_ms / 1e3 - epoch_us({naming.COMMITTED_AT}) / 1e6,"
            f" [0.5, 0.95]) FROM {DUCKDB.name(table.changes)}"
            f" JOIN (VALUES {shown}) AS s(ingested, shown_ms)"
            f" ON epoch_us({naming.INGESTED_AT}) = s.ingested"
            # So that older files are not read.
            f" WHERE {naming.INGESTED_AT} >= {DUCKDB.instant(min(visible))}"
            f" AND {naming.PHASE} <> {SNAPSHOT_PHASE} AND {naming.PARTITION} >= 0"
        ).fetchone()
    if row is None or row[0] is None:
        return dict.fromkeys(_NAMES)
    return dict(zip(_NAMES, (round(float(figure), 3) for figure in row[0]), strict=True))


def _visible(log: CatalogTable) -> dict[int, int]:
    """Return by time of ingestion when its rows became visible, of the newest hour of commits."""
    found: dict[int, int] = {}
    newest = max((each.committed_ms for each in log.snapshots.values()), default=0)
    for snapshot in log.snapshots.values():
        stamp = ChangesStamp.from_json(snapshot.stamp) if snapshot.stamp else None
        if stamp is not None and newest - snapshot.committed_ms <= _WINDOW_MS:
            ingested, ms = stamp.ingested_through, snapshot.committed_ms
            found[ingested] = min(found.get(ingested, ms), ms)
    return found
