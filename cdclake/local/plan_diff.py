"""Tables that join, leave and change: what may differ between two plans, and what then happens.

A table that joins a streaming lake is snapshotted by Debezium's incremental snapshot while the
others flow: with offsets there, `snapshot.mode=initial` would never look at it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from cdclake import naming
from cdclake.errors import InputError
from cdclake.iceberg.evolution import can_become
from cdclake.jobs.control.requests import request_resume
from cdclake.jobs.runtime.source import signal_snapshot
from cdclake.local.lake.lake import LocalLake
from cdclake.local.operations_backend import local_operations
from cdclake.local.reader.table_figures import last_position
from cdclake.plan import Column, Plan, Table
from cdclake.postgres.file_lines import renamed_line


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanDiff:
    """How a plan differs from the one that the lake streamed before."""

    is_first: bool
    joining: tuple[Table, ...] = ()
    widened: tuple[Table, ...] = ()  # with new columns, of which the lake holds no value yet
    renamed: tuple[Table, ...] = ()  # with columns that are said to have another name now
    reshaped: tuple[Table, ...] = ()  # with columns that are declared otherwise in any way
    kept: tuple[Table, ...] = ()  # that streamed before, too
    leaving: tuple[Table, ...] = ()
    by_signal: bool = True  # False: a full snapshot comes anyway

    def all_snapshotted(self) -> PlanDiff:
        """The same change when every table is snapshotted anew."""
        return replace(self, by_signal=False)

    def found(self, renamed: Collection[str], unpublished: Collection[str]) -> PlanDiff:
        """The same change, by what the source shows (tables as `schema.table`).

        A column that was renamed before the file said so has sent values that no event holds. A
        table that the publication had lost has changes that nobody has read: it joins again.
        """
        if self.is_first:
            return self
        late = tuple(table for table in self.renamed if table.source in renamed)
        lost = tuple(t for t in self.kept if t.source in unpublished)
        return replace(self, widened=_united(self.widened, late), joining=self.joining + lost)

    @property
    def changes_tables(self) -> bool:
        """Whether a running connector has to take up another list of tables."""
        return not self.is_first and bool(self.joining or self.leaving or self.widened)

    def request_snapshots(self, lake: LocalLake) -> None:
        """Ask for all rows of the tables that lack any; call it while the connector is stopped."""
        lacking = _united(self.joining, self.widened)
        if self.is_first or not self.by_signal or not lacking:
            return
        signal_snapshot(lake.dsn, lacking)


def compare(before: Plan | None, after: Plan) -> PlanDiff:
    """The change from one plan to the next; InputError for what a lake cannot take up."""
    if before is None:
        return PlanDiff(is_first=True, joining=after.tables)
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
    kept = [(known[t.source], t) for t in after.tables if t.source in known]
    return PlanDiff(
        is_first=False,
        joining=tuple(table for table in after.tables if table.source not in known),
        widened=tuple(new for old, new in kept if _new_columns(old, new)),
        renamed=tuple(new for old, new in kept if _renamed_columns(old, new)),
        reshaped=tuple(new for old, new in kept if old.columns != new.columns),
        kept=tuple(new for _, new in kept),
        leaving=tuple(t for t in before.tables if t.source not in {new.source for _, new in kept}),
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
    if before.delivery != after.delivery:
        problems.append(f"{after.source}: `delivery` changed to {after.delivery}")
    elif before.topic != after.topic:
        problems.append(f"{after.source}: its topic changed from {before.topic} to {after.topic}")
    if before.name != after.name:
        problems.append(f"{after.source}: its lake name changed from {before.name} to {after.name}")
    if before.key != after.key:
        problems.append(
            f"{after.source}: the key changed from {list(before.key)} to {list(after.key)}"
        )
    if before.deletes != after.deletes:
        problems.append(f"{after.source}: `deletes` changed to {after.deletes}")
    for column in after.columns:
        predecessor = _predecessor(column, before)
        if predecessor is None:
            problems += _takes_a_name(after.source, column, before)
        else:
            problems += _column_problems(after.source, predecessor, column)
    return problems


def _predecessor(column: Column, before: Table) -> Column | None:
    """What the column was before: of its own name, or of the latest that it says it had."""
    old = {column.source: column for column in before.columns}
    return next((old[name] for name in column.names if name in old), None)


def _takes_a_name(table: str, column: Column, before: Table) -> list[str]:
    """A new column under the lake's name of another one, whose values would pass for its own."""
    held = [old for old in before.columns if old.name == column.name]
    return [
        f"{table}: column {column.source!r} would take the name {column.name} that {old.source!r}"
        f" has in the lake; write `{renamed_line(old, column.source)}` if it is the same column,"
        f" else take {old.source!r} out with an `up` of its own"
        for old in held
    ]


def _column_problems(table: str, before: Column, after: Column) -> list[str]:
    problems = []
    if not can_become(before.column_type, after.column_type):
        problems.append(
            f"{table}: column {after.source!r} changed from {before.type} to {after.type}; take it"
            " out of the file, `cdclake up FILE`, and in again with its new type: the lake then"
            f" keeps its old values as {naming.dropped_column(before.name, 1)}"
        )
    if (before.mask, before.truncate_to) != (after.mask, after.truncate_to):
        problems.append(f"{table}: the mask of column {after.source!r} changed")
    if before.name != after.name:
        names = [*before.renamed_from, before.source] if before.source != after.source else []
        names = names or list(before.renamed_from)
        listed = f"`renamed_from: [{', '.join(names)}]`"
        problems.append(
            f"{table}: column {after.source!r} is {before.name!r} in the lake and would become"
            f" {after.name!r}; " + (f"write {listed}" if names else "remove its `renamed_from`")
        )
    return problems


def _new_columns(before: Table, after: Table) -> bool:
    return any(_predecessor(column, before) is None for column in after.columns)


def _renamed_columns(before: Table, after: Table) -> bool:
    found = ((column, _predecessor(column, before)) for column in after.columns)
    return any(old is not None and old.source != column.source for column, old in found)


def _united(one: tuple[Table, ...], other: tuple[Table, ...]) -> tuple[Table, ...]:
    return one + tuple(table for table in other if table not in one)


def join_tables(lake: LocalLake, change: PlanDiff, *, write_plan: Callable[[], None]) -> None:
    """Publish the plan to the jobs; a table that was here before is swept of what it missed.

    Its new snapshot says nothing about rows that were deleted while it was away. The stream deletes
    them when the snapshot has been read: as `resync` does, so that a row which changes meanwhile
    keeps what that change does not bring. A table that its columns had stopped reads its gap from
    Kafka, now that they are declared otherwise.
    """
    if not change.is_first and change.by_signal:
        for table in change.joining:
            known = last_position(lake, table)
            if known is not None:
                _refuse_without_sweep(table)
                local_operations(lake).request_rejoin(table, known)
    write_plan()
    for table in change.reshaped:
        # After the plan, of which the stream reads requests first; also to one that flows, for a
        # batch that runs by the plan before may still stop it.
        request_resume(lake.control, table.name, columns_changed=True)


def _refuse_without_sweep(table: Table) -> None:
    if table.delivery == "firehose":
        raise InputError(
            f"the lake has held {table.source} as {table.name} before, and nobody can tell which of"
            " its rows were deleted meanwhile: the stream does not write what Firehose delivers",
            "take it in under another `name:`",
        )
