"""Refusal of a plan that needs rows of a table that Debezium cannot read while it streams."""

from __future__ import annotations

from cdclake.column_problems import predecessor
from cdclake.plan import Column, Plan, Table
from cdclake.plan_diff import PlanDiff
from cdclake.postgres.file_lines import scalar
from cdclake.postgres.refusal import Refusal, refused
from cdclake.postgres.source_names import check_rereading


def refuse_rereading(before: Plan | None, change: PlanDiff) -> None:
    """Raise InputError if a signal cannot name a table that joins or gets columns.

    `before` is the plan that the lake streams. A full snapshot needs no signal.
    """
    if change.is_first or not change.by_signal:
        return
    stored = {table.source: table for table in before.tables} if before else {}
    refusals = []
    for table in change.lacking:
        new = () if table in change.joining else _new_columns(stored.get(table.source), table)
        for refusal in check_rereading(table.schema, table.table):
            refusals.append(_of_columns(refusal, table, new) if new else refusal)
    if refusals:
        raise refused(refusals)


def _new_columns(before: Table | None, after: Table) -> tuple[Column, ...]:
    """Return the columns that are new, or have a new name that their source has already."""
    found = [(column, predecessor(column, before)) for column in after.columns if before]
    return tuple(new for new, old in found if old is None or old.source != new.source)


def _of_columns(refusal: Refusal, table: Table, new: tuple[Column, ...]) -> Refusal:
    named = ", ".join(repr(column.source) for column in new)
    lines = [f"`{scalar(c.source)}: {{exclude: true}}`" for c in new if c.name not in table.key]
    return Refusal(
        refusal.subject,
        f"no event has all values of {named}, and {refusal.message}",
        "; or ".join([*([f"write {', '.join(lines)}"] if lines else []), refusal.remedy]),
    )
