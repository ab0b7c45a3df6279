"""Check that a lake can go on with a plan, by all that it has stored, and the record of that.

A table that leaves the file keeps its rows under its lake name. If it comes again, it goes on with
them, and so it must have the same source, key and types. Derived tables, web logs and put tables
keep their names as well.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Any

from cdclake.config.column_lines import Lines
from cdclake.iceberg.widening import still_widened
from cdclake.local.lake.lake import LakeState
from cdclake.local.mask_history import add_to_history
from cdclake.plan import Plan, Table
from cdclake.plan_diff import PlanDiff, compare, compare_appended, compare_stored


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
    earlier = Plan.from_json(state.stored) if state.stored else before
    removed = _removed_tables(earlier, streamed)
    derived = earlier.derived if earlier else ()
    masks = add_to_history(state.masks, before, plan, elsewhere)  # the worst, so it comes first
    plan = still_widened(plan, (*removed, *streamed))
    if before:
        stored = replace(before, derived=derived, **_appended(earlier, before))
        if streamed or removed:
            compare_stored(stored, plan, elsewhere, removed, partial(_place_in, file))
        else:
            compare_appended(stored, plan, elsewhere)
    tables = {table.name: table for table in (*removed, *streamed, *plan.all_tables)}
    queried = {table.name: table for table in (*derived, *plan.derived)}
    remembered = replace(
        _as_plan(plan, tables.values()),
        derived=tuple(queried.values()),
        **_appended(earlier, before, plan),
    )
    return plan, replace(state, masks=masks, stored=remembered.to_json())


def compare_plans(state: LakeState, plan: Plan) -> PlanDiff:
    """Return the difference between what the lake streams and the plan; InputError if it cannot.

    A lake with only web logs has never streamed: its first tables are added as to a new lake. After
    an `up` that did not end, the jobs may have had other plans than the stored one.
    """
    before = Plan.from_json(state.plan) if state.plan else None
    change = compare(before if before and before.tables else None, plan)
    return change.since([Plan.from_json(published) for published in state.published])


def _removed_tables(earlier: Plan | None, streamed: Collection[Table]) -> tuple[Table, ...]:
    if earlier is None:
        return ()
    names = {table.name for table in streamed}
    return tuple(table for table in earlier.all_tables if table.name not in names)


def _appended(*plans: Plan | None) -> dict[str, Any]:
    """Return the web logs and put tables of these plans, as fields of a plan.

    A stream that has lost a table is listed with its earlier tables, too.
    """
    return {
        name: tuple(
            {(s.name, s.tables): s for plan in plans if plan for s in getattr(plan, name)}.values()
        )
        for name in ("web_logs", "puts")
    }


def _place_in(file: str, table: Table) -> str:
    line = Lines(file).of_table(table)
    return "" if line is None else f"{file}:{line}: "


def _as_plan(plan: Plan, tables: Collection[Table]) -> Plan:
    streamed = tuple(table for table in tables if table.delivery != "poll")
    polled = tuple(table for table in tables if table.delivery == "poll")
    return replace(plan, tables=streamed, polled=polled)
