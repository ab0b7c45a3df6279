"""Figures of each table: rows, events, freshness, quarantined and withheld events."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import duckdb

from cdclake import naming
from cdclake.debezium.position import SNAPSHOT_PHASE
from cdclake.errors import InputError
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.iceberg.catalog_entries import table_entries
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp
from cdclake.jobs.reader.catalog import CatalogTable
from cdclake.jobs.reader.duck import Reader
from cdclake.jobs.reader.incomplete_counts import incomplete_count
from cdclake.jobs.reader.quarantine_counts import quarantined_events, withheld_events
from cdclake.jobs.reader.row_counts import row_count
from cdclake.jobs.reader.tail import added_files
from cdclake.local.lake.lake import LocalLake
from cdclake.local.reader.duck import lake_reader
from cdclake.local.reader.figure_cache import FigureCache
from cdclake.local.reader.freshness_percentiles import freshness_percentiles
from cdclake.plan import Table

_CACHE = "tables.json"
_UNREADABLE = (duckdb.Error, InputError)  # of one table; ComponentFailed is of all
_HELD = {"quarantined": quarantined_events, "withheld": withheld_events}
_NOTHING = dict.fromkeys(
    (
        *("changes_rows", "state_rows", "live_rows", "freshness_s", "incomplete", "files", *_HELD),
        *("freshness_p50_s", "freshness_p95_s", "unapplied_rows"),
    )
)


def table_figures(lake: LocalLake) -> dict[str, dict[str, Any]]:
    """Return the figures of each table by its name in the lake.

    They are changes_rows, state_rows (including tombstones), live_rows, unapplied_rows (those of
    the changelog that the state may lack), freshness_s, incomplete (rows that lack values in
    Athena's view), quarantined, and of the latter those that rules withhold; files, the data files
    of changelog and state; freshness_p50_s and freshness_p95_s, over the rows of the last hour that
    had any; all None if the stream has not created the table's objects or columns yet. Freshness is
    that of the newest streamed row: the time from its commit in the source to the first snapshot
    with it.
    """
    reader = lake_reader(lake)
    made, cache = _made(lake), FigureCache(lake.home.data("figures") / _CACHE)
    # The columns that an event may lack decide which rows are incomplete.
    places = {t.name: [made[t.name], made[t.changes], *t.may_be_unsent]
              for t in lake.plan.all_tables if {t.name, t.changes} <= made.keys()}  # fmt: skip
    known = {name: cache.get(name, place) for name, place in places.items()}
    unread = [t for t in lake.plan.all_tables if t.name in known and known[t.name] is None]
    read = _read_each(reader, unread)
    for name, found in read.items():
        cache.put(name, places[name], found)
    figures = {t.name: dict(known.get(t.name) or read.get(t.name) or _NOTHING)
               for t in lake.plan.all_tables}  # fmt: skip
    if naming.QUARANTINE in made:
        for figure, counts in _held(reader, cache, made[naming.QUARANTINE]).items():
            for name, count in counts.items():
                if name in figures and figures[name][figure] is not None:
                    figures[name][figure] = count
    cache.save()
    return figures


def _read_each(reader: Reader, tables: Sequence[Table]) -> dict[str, dict[str, Any]]:
    """Return the figures of the tables, except those that lack a declared column."""
    try:
        return _read(reader, tables)
    except _UNREADABLE:
        figures: dict[str, dict[str, Any]] = {}
        for table in tables:
            with suppress(*_UNREADABLE):
                figures |= _read(reader, [table])
        return figures


def _held(reader: Reader, cache: FigureCache, location: str) -> dict[str, dict[str, int]]:
    """Return the numbers of quarantined and of withheld events by table."""
    found = cache.get(naming.QUARANTINE, [location])
    if found is None:
        found = {figure: counts(reader) for figure, counts in _HELD.items()}
        cache.put(naming.QUARANTINE, [location], found)
    return found


def _read(reader: Reader, tables: Sequence[Table]) -> dict[str, dict[str, Any]]:
    if not tables:
        return {}
    with reader.open(tables, tails=True) as session:
        return {
            table.name: {
                "changes_rows": row_count(session, table.changes),
                "state_rows": row_count(session, table.name),
                "live_rows": row_count(session, naming.current_name(table.name)),
                "unapplied_rows": row_count(session, naming.tail_name(table.name)),
                "freshness_s": _freshness(session, reader.catalog.load(table.changes), table),
                "incomplete": incomplete_count(session, table),
                **_of_metadata(session, reader, table),
                **dict.fromkeys(_HELD, 0),
            }
            for table in tables
        }


def _of_metadata(
    session: duckdb.DuckDBPyConnection, reader: Reader, table: Table
) -> dict[str, Any]:
    log, state = (reader.catalog.load(name) for name in (table.changes, table.name))
    files = sum(each.current.data_files for each in (log, state) if each.current is not None)
    return {"files": files, **freshness_percentiles(session, log, table)}


def _made(lake: LocalLake) -> dict[str, str]:
    """Return the location of each table's metadata."""
    entries = table_entries(lake.client("glue"), lake.plan.lake_database)
    return {
        name: entry.get("Parameters", {}).get("metadata_location", "")
        for name, entry in entries.items()
    }


def _freshness(session: duckdb.DuckDBPyConnection, log: CatalogTable, table: Table) -> float | None:
    if table.delivery == "firehose":
        return _freshness_of_files(session, log)
    newest = session.execute(
        f"SELECT epoch_us({naming.INGESTED_AT}), epoch_us(max({naming.COMMITTED_AT}))"
        f" FROM {DUCKDB.name(table.changes)}"
        f" WHERE {naming.PHASE} <> {SNAPSHOT_PHASE} AND {naming.PARTITION} >= 0"
        " GROUP BY ALL ORDER BY 1 DESC LIMIT 1"
    ).fetchone()
    if newest is None:
        return None
    shown_ms = _commit_of(log, newest[0])
    return None if shown_ms is None else round(shown_ms / 1000 - newest[1] / 1e6, 3)


def _freshness_of_files(session: duckdb.DuckDBPyConnection, log: CatalogTable) -> float | None:
    """Return the freshness of the newest change in the last append, None if it has no change."""
    added = added_files(session, log)
    last_ms = max(added.values(), default=0)
    last = ", ".join(DUCKDB.text(file) for file, at in added.items() if at == last_ms)
    if not last:
        return None
    row = session.execute(
        f"SELECT epoch_us(max({naming.COMMITTED_AT})) FROM read_parquet([{last}])"
        f" WHERE {naming.PHASE} <> {SNAPSHOT_PHASE}"
    ).fetchone()
    return None if row is None or row[0] is None else round(last_ms / 1000 - row[0] / 1e6, 3)


def _commit_of(log: CatalogTable, ingested_at: int) -> int | None:
    """Return the commit time of the append with that ingestion time; None if it has expired."""
    for snapshot in log.snapshots.values():
        stamp = ChangesStamp.from_json(snapshot.stamp) if snapshot.stamp else None
        if stamp is not None and stamp.ingested_through == ingested_at:
            return snapshot.committed_ms
    return None


def last_position(lake: LocalLake, table: Table) -> str | None:
    """Return the greatest position in the table's changelog; None if it is missing or empty."""
    if table.changes not in _made(lake) or table.name not in _made(lake):
        return None
    return lake_reader(lake).newest_position(table)
