"""Progress of the tables' snapshots: until its rows are in the lake, a table is loading.

`up` notes where a snapshot begins in the topics. Debezium's notification says when the connector
has read a table; it is written behind the table's rows. The table is loaded once the lake has
processed what its topic held at that time. In a later epoch the lake also has to remove the rows
that the snapshot has replaced.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from cdclake.jobs.control.progress import Progress
from cdclake.jobs.runtime.source import connect
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.topics import Message, end_offsets, offsets_at, read_messages
from cdclake.plan import Table
from cdclake.postgres.source import read_catalog

Offsets = Mapping[int, int]
# replacing: all rows are in, and those of the epoch before are still there too.
Phase = Literal["reading", "replacing"]
_READ = ("SUCCEEDED", "EMPTY")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadingTable:
    """Unfinished snapshot of a table."""

    rows: int  # records that the lake has processed since the snapshot began
    estimated_rows: int | None  # None: the source has no statistics
    phase: Phase = "reading"
    refused: str | None = None  # why the connector did not read the table

    def to_json(self) -> dict[str, Any]:
        """Return the object that `status` shows."""
        return {"phase": self.phase, "rows": self.rows, "estimated_rows": self.estimated_rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The connector's reading of one table, from its notifications."""

    total_rows: int | None = None
    status: str | None = None  # None: it is still reading
    ended_ms: int | None = None  # no row of the snapshot was written to Kafka later


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Read of a whole table that the connector has ended."""

    rows: int
    seconds: float | None  # None: the connector has sent nothing since


def begin_loads(lake: LocalLake, tables: Iterable[Table]) -> dict[str, Any]:
    """Return what to keep about the snapshots of these tables; call it before they begin."""
    chosen = list(tables)
    if not chosen:
        return {}
    topic = lake.plan.notification_topic
    ends = end_offsets(lake.kafka, [topic, *(table.topic for table in chosen)])
    rows = _estimated_rows(lake, chosen)
    return {
        table.name: {
            "first_notification": ends[topic][0],
            "offsets": {str(place): end for place, end in ends[table.topic].items()},
            "estimated_rows": rows.get(table.source) or None,
            "begun_at": time.time(),
        }
        for table in chosen
    }


def _estimated_rows(lake: LocalLake, tables: Sequence[Table]) -> dict[str, int]:
    wanted = {(table.schema, table.table) for table in tables}
    with connect(lake.dsn) as connection:
        return {found.source: found.rows for found in read_catalog(connection, tables=wanted)}


def unfinished_loads(
    lake: LocalLake, arrived: Mapping[str, Offsets], replacing: Collection[str]
) -> dict[str, LoadingTable]:
    """Return the tables whose snapshot is not in the lake yet, by name.

    Those in `replacing` still have the rows of the epoch before.
    """
    kept = {table: lake.state.loads[table.name] for table in lake.plan.tables
            if table.name in lake.state.loads}  # fmt: skip
    if not kept:
        return {}
    first = min(load["first_notification"] for load in kept.values())
    retained, messages = read_messages(lake.kafka, lake.plan.notification_topic, first)
    scans = {
        table: scan_of(table, [m for m in messages if m.offset >= load["first_notification"]])
        for table, load in kept.items()
        if load["first_notification"] >= retained  # else Kafka has deleted the notifications
    }
    ended = {table.topic: ms + 1 for table, scan in scans.items() if (ms := _read_until(scan))}
    ends = offsets_at(lake.kafka, ended) if ended else {}
    found = {}
    for table, scan in scans.items():
        offsets = arrived.get(table.name, {})
        last = ends.get(table.topic, {}).items()
        if table.topic not in ends or any(offsets.get(place, 0) < end for place, end in last):
            found[table.name] = _progress(kept[table], scan, offsets)
        elif table.name in replacing:
            found[table.name] = replace(_progress(kept[table], scan, offsets), phase="replacing")
    return found


def finished_reads(lake: LocalLake, before: Mapping[str, Any]) -> dict[str, Read]:
    """Return the reads that the connector has ended, without those noted in `before`."""
    begun = {
        table: load
        for table in lake.plan.tables
        if (load := lake.state.loads.get(table.name)) and load != before.get(table.name)
    }
    if not begun:
        return {}
    first = min(load["first_notification"] for load in begun.values())
    _, messages = read_messages(lake.kafka, lake.plan.notification_topic, first)
    found = {}
    for table, load in begun.items():
        scan = scan_of(table, [m for m in messages if m.offset >= load["first_notification"]])
        if scan.status in _READ:
            seconds = None if scan.ended_ms is None else scan.ended_ms / 1000 - load["begun_at"]
            found[table.name] = Read(rows=scan.total_rows or 0, seconds=seconds)
    return found


def tables_replacing(lake: LocalLake, progress: Progress) -> frozenset[str]:
    """Return the tables that still have rows that the epoch's snapshot replaces."""
    epoch = lake.state.epoch
    return frozenset(t.name for t in lake.plan.tables if progress.is_replacing(t, epoch))


def scan_of(table: Table, messages: Sequence[Message]) -> Scan:
    """Return the connector's reading of the table.

    The last row of a snapshot may follow the notification that the table was read, but not the
    next notification.
    """
    total: int | None = None
    for place, message in enumerate(messages):
        more = message.value.get("additional_data", {})
        if more.get("current_collection_in_progress") == table.source and "total_rows" in more:
            total = int(more["total_rows"])
        kind = message.value.get("type")
        if kind == "TABLE_SCAN_COMPLETED" and more.get("scanned_collection") == table.source:
            total = int(more.get("total_rows_scanned", total or 0))
            later = messages[place + 1 :]
            ended = later[0].written_ms if later else None
            return Scan(total_rows=total, status=more.get("status"), ended_ms=ended)
    return Scan(total_rows=total)


def _read_until(scan: Scan) -> int | None:
    """Return when the connector had read the table; None if it has not, or could not."""
    return scan.ended_ms if scan.status in _READ else None


def rows_since(load: Mapping[str, Any], arrived: Offsets) -> int:
    """Count the records that the lake has processed since the snapshot began."""
    begun = {int(place): end for place, end in load["offsets"].items()}
    return sum(max(0, end - begun.get(place, 0)) for place, end in arrived.items())


def _progress(load: Mapping[str, Any], scan: Scan, arrived: Offsets) -> LoadingTable:
    failed = scan.status is not None and scan.status not in _READ
    return LoadingTable(
        rows=rows_since(load, arrived),
        estimated_rows=load["estimated_rows"] if scan.total_rows is None else scan.total_rows,
        refused=f"the connector did not read the table: {scan.status}" if failed else None,
    )
