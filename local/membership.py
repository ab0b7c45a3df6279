"""Tables that join and leave a lake: what may change between two plans, and what then happens.

A table that joins a streaming lake is snapshotted by Debezium's incremental snapshot while the
others flow: with offsets there, `snapshot.mode=initial` would never look at it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from cdclake.debezium.position import just_after
from cdclake.errors import InputError
from cdclake.plan import Plan, Table
from local.lake import Lake
from local.reader.figures import last_position
from local.source import signal_snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How a plan differs from the one that the lake streamed before."""

    is_first: bool
    joining: tuple[Table, ...] = ()
    leaving: tuple[Table, ...] = ()
    by_signal: bool = True  # False: a full snapshot comes anyway

    def all_snapshotted(self) -> Change:
        """The same change when every table is snapshotted anew."""
        return replace(self, by_signal=False)

    @property
    def changes_tables(self) -> bool:
        """Whether a running connector has to take up another list of tables."""
        return not self.is_first and bool(self.joining or self.leaving)

    def request_snapshots(self, lake: Lake) -> None:
        """Ask for the joining tables' rows; call it while the connector is stopped."""
        if self.is_first or not self.by_signal or not self.joining:
            return
        signal_snapshot(lake.dsn, self.joining)


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
    for source in [*old, *(name for name in new if name not in old)]:
        if source not in new:
            problems.append(f"{after.source}: column {source!r} is gone")
        elif source not in old:
            problems.append(f"{after.source}: column {source!r} is new")
        elif (old[source].type, old[source].mask) != (new[source].type, new[source].mask):
            problems.append(
                f"{after.source}: column {source!r} changed from {old[source].type} to "
                f"{new[source].type}"
            )
    return problems


def join_tables(lake: Lake, change: Change, *, write_plan: Callable[[], None]) -> None:
    """Publish the plan to the jobs; a table that was here before is swept of what it missed.

    Its new snapshot says nothing about rows that were deleted while it was away: a sweep stands
    after its last known event and before the first new one.
    """
    if not change.is_first and change.by_signal:
        for table in change.joining:
            last = last_position(lake, table)
            if last is not None:
                lake.control.write(f"sweeps/{table.name}.json", {"position": str(just_after(last))})
    write_plan()
