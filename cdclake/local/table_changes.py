"""What an `up` changed in each table: its columns, and the rows that were read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from cdclake.local.awaited_events import find_unfinished_loads
from cdclake.local.lake.lake import LakeState, LocalLake
from cdclake.local.lake.table_loads import LoadingTable, Read, finished_reads
from cdclake.local.reader.duck import lake_reader
from cdclake.plan import Plan, Table
from cdclake.plan_diff import PlanDiff


@dataclass(frozen=True, slots=True, kw_only=True)
class TableChange:
    """Change of one table."""

    table: str
    source: str
    joined: bool = False
    left: bool = False
    added_columns: tuple[str, ...] = ()  # as `rating integer`
    removed_columns: tuple[str, ...] = ()
    rows: int | None = None  # that were read; None if the table was not read
    estimated_rows: int | None = None
    reading: bool = False  # True if rows are still to come
    seconds: float | None = None


def table_changes(lake: LocalLake, before: LakeState, change: PlanDiff) -> list[dict[str, Any]]:
    """Return the tables that joined, left, have other columns or were read since `before`."""
    loads = {} if lake.state.paused else find_unfinished_loads(lake)
    reads = {} if lake.state.paused else finished_reads(lake, before.loads)
    reads |= _loaded_in_bulk(lake, change, {*loads, *reads})
    streamed = Plan.from_json(before.plan).tables if before.plan else ()
    known = {table.source: table for table in streamed}
    joining = {table.source for table in change.joining}
    found = [
        _changed(table, known.get(table.source), table.source in joining, loads, reads)
        for table in lake.plan.tables
    ]
    found += [TableChange(table=t.name, source=t.source, left=True) for t in change.leaving]
    return [asdict(each) for each in found if _is_any(each)]


def _loaded_in_bulk(lake: LocalLake, change: PlanDiff, others: set[str]) -> dict[str, Read]:
    """Return the rows of joining tables that the connector has not read: the bulk load has."""
    loaded = [table for table in change.joining if table.name not in others]
    if not change.is_first or not loaded or lake.plan.snapshot_mode != "bulk":
        return {}
    stored = lake_reader(lake).load(loaded, quarantine=False)
    rows = {t.name: at.live_rows for t in loaded if (at := stored[t.name].current) is not None}
    return {name: Read(rows=count, seconds=None) for name, count in rows.items() if count}


def _changed(
    table: Table,
    before: Table | None,
    joined: bool,
    loads: Mapping[str, LoadingTable],
    reads: Mapping[str, Read],
) -> TableChange:
    old, new = _columns(before), _columns(table)
    load, read = loads.get(table.name), reads.get(table.name)
    rows = load.rows if load is not None else read.rows if read is not None else None
    return TableChange(
        table=table.name,
        source=table.source,
        joined=joined,
        added_columns=() if joined else tuple(f"{n} {new[n]}" for n in new if n not in old),
        removed_columns=() if joined else tuple(name for name in old if name not in new),
        rows=rows,
        estimated_rows=None if load is None else load.estimated_rows,
        reading=load is not None,
        seconds=round(read.seconds, 1) if load is None and read and read.seconds else None,
    )


def _columns(table: Table | None) -> dict[str, str]:
    return {} if table is None else {column.name: column.type for column in table.columns}


def _is_any(change: TableChange) -> bool:
    columns = change.added_columns or change.removed_columns
    return bool(change.joined or change.left or columns or change.rows is not None)
