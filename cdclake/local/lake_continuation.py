"""Check that a lake can go on with a plan, by all that it has stored, and the record of that.

A table that leaves the file keeps its rows under its lake name. If it comes again, it goes on with
them, and so it must have the same source, key and types.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from cdclake.config.column_lines import Lines
from cdclake.iceberg.widening import still_widened
from cdclake.local.lake.lake import LakeState
from cdclake.local.mask_history import add_to_history
from cdclake.plan import Plan, Table
from cdclake.plan_diff import compare_stored


def continued(
    state: LakeState, plan: Plan, file: str, elsewhere: str = ""
) -> tuple[Plan, LakeState]:
    """Return the plan with types that the source has widened, and the state that remembers it.

    `file` is the plan's pipeline file, whose lines messages name.
    `elsewhere` names the lake in messages, if it is not the one on this machine.

    Raises:
        InputError: if the lake cannot go on with the plan
    """
    before = Plan.from_json(state.plan) if state.plan else None
    streamed = before.all_tables if before else ()
    removed = _removed_tables(state, streamed)
    masks = add_to_history(state.masks, before, plan, elsewhere)  # the worst, so it comes first
    plan = still_widened(plan, (*removed, *streamed))
    if before and (streamed or removed):  # a lake with only web logs has no table to continue
        compare_stored(before, plan, elsewhere, removed, partial(_place_in, file))
    stored = {table.name: table for table in (*removed, *streamed, *plan.all_tables)}
    return plan, replace(state, masks=masks, stored=_as_plan(plan, stored.values()))


def _removed_tables(state: LakeState, streamed: Collection[Table]) -> tuple[Table, ...]:
    if not state.stored:
        return ()
    names = {table.name for table in streamed}
    stored = Plan.from_json(state.stored).all_tables
    return tuple(table for table in stored if table.name not in names)


def _place_in(file: str, table: Table) -> str:
    line = Lines(file).of_table(table)
    return "" if line is None else f"{file}:{line}: "


def _as_plan(plan: Plan, tables: Collection[Table]) -> str:
    streamed = tuple(table for table in tables if table.delivery != "poll")
    polled = tuple(table for table in tables if table.delivery == "poll")
    return replace(plan, tables=streamed, polled=polled).to_json()
