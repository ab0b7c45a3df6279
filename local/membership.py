"""Tables that join, leave and widen: what may change between two plans, and what then happens.

A table that joins a streaming lake is snapshotted by Debezium's incremental snapshot while the
others flow: with offsets there, `snapshot.mode=initial` would never look at it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from cdclake.errors import InputError
from cdclake.iceberg.evolution import can_become
from cdclake.plan import Column, Plan, Table
from local.lake import Lake
from local.reader.figures import last_position
from local.repair import request_resync
from local.source import signal_snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How a plan differs from the one that the lake streamed before."""

    is_first: bool
    joining: tuple[Table, ...] = ()
    widened: tuple[Table, ...] = ()  # with new columns, of which the lake holds no value yet
    leaving: tuple[Table, ...] = ()
    by_signal: bool = True  # False: a full snapshot comes anyway

    def all_snapshotted(self) -> Change:
        """The same change when every table is snapshotted anew."""
        return replace(self, by_signal=False)

    @property
    def changes_tables(self) -> bool:
        """Whether a running connector has to take up another list of tables."""
        return not self.is_first and bool(self.joining or self.leaving or self.widened)

    def request_snapshots(self, lake: Lake) -> None:
        """Ask for all rows of the tables that lack any; call it while the connector is stopped."""
        lacking = self.joining + self.widened
        if self.is_first or not self.by_signal or not lacking:
            return
        signal_snapshot(lake.dsn, lacking)


def compare(before: Plan | None, after: Plan) -> Change:
    """The change from one plan to the next; InputError for what a lake cannot take up."""
    if before is None:
        return Change(is_first=True, joining=after.tables)
    problems = _lake_problems(before, after)
    known = {table.source: table for table in before.tables}
    for table in after.tables:
        if table.source in known:
            problems += _table_problems(known[table.source], table)
    if problems:
        raise InputError(
            "the running lake cannot take up this file: " + "; ".join(problems),
            "undo these changes; or start over with `cdclake down --purge`; or leave the table out,"
            " `cdclake up`, and take it in again under another `name:`",
        )
    kept = {table.source for table in after.tables}
    return Change(
        is_first=False,
        joining=tuple(table for table in after.tables if table.source not in known),
        widened=tuple(
            table
            for table in after.tables
            if table.source in known and _new_columns(known[table.source], table)
        ),
        leaving=tuple(table for table in before.tables if table.source not in kept),
    )


def _lake_problems(before: Plan, after: Plan) -> list[str]:
    fixed = {
        "the pipeline's name": (before.name, after.name),
        "source.database": (before.source_database, after.source_database),
        "lake.database": (before.lake_database, after.lake_database),
        "lake.format_version": (before.format_version, after.format_version),
    }
    return [
        f"{what} changed from {old!r} to {new!r}"
        for what, (old, new) in fixed.items()
        if old != new
    ]


def _table_problems(before: Table, after: Table) -> list[str]:
    problems = []
    if before.name != after.name:
        problems.append(f"{after.source}: its lake name changed from {before.name} to {after.name}")
    if before.key != after.key:
        problems.append(
            f"{after.source}: the key changed from {list(before.key)} to {list(after.key)}"
        )
    if before.deletes != after.deletes:
        problems.append(f"{after.source}: `deletes` changed to {after.deletes}")
    old = {column.source: column for column in before.columns}
    new = {column.source: column for column in after.columns}
    for source, column in old.items():
        if source not in new:
            problems.append(f"{after.source}: column {source!r} is gone")
            continue
        problems += _column_problems(after.source, column, new[source])
    return problems


def _column_problems(table: str, before: Column, after: Column) -> list[str]:
    problems = []
    if not can_become(before.column_type, after.column_type):
        problems.append(
            f"{table}: column {before.source!r} changed from {before.type} to {after.type}"
        )
    if (before.mask, before.truncate_to) != (after.mask, after.truncate_to):
        problems.append(f"{table}: the mask of column {before.source!r} changed")
    if before.name != after.name:
        problems.append(f"{table}: column {before.source!r} has another name in the lake")
    return problems


def _new_columns(before: Table, after: Table) -> set[str]:
    return {c.source for c in after.columns} - {c.source for c in before.columns}


def join_tables(lake: Lake, change: Change, *, write_plan: Callable[[], None]) -> None:
    """Publish the plan to the jobs; a table that was here before is swept of what it missed.

    Its new snapshot says nothing about rows that were deleted while it was away. The stream deletes
    them when the snapshot has been read: as `resync` does, so that a row which changes meanwhile
    keeps what that change does not bring.
    """
    if not change.is_first and change.by_signal:
        for table in change.joining:
            known = last_position(lake, table)
            if known is not None:
                request_resync(lake, table, known, rejoins=True)
    write_plan()
