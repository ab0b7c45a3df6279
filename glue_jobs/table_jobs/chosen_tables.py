"""Tables that `--tables` of a job names."""

from __future__ import annotations

from collections.abc import Iterator

from cdclake.derived_table import DerivedTable
from cdclake.hudi_copy import HudiCopy
from cdclake.plan import Plan, Table


def chosen_tables(plan: Plan, names: str | None) -> Iterator[Table]:
    """Yield the tables that `--tables a,b` names, or all; InputError for an unknown name."""
    if not names:
        yield from plan.all_tables
        return
    for name in names.split(","):
        yield plan.table(name)


def chosen_checked(plan: Plan, names: str | None) -> Iterator[Table]:
    """Yield the tables that `--tables a,b` names, or all with quality rules."""
    yield from chosen_tables(plan, names) if names else filter(lambda t: t.checks, plan.all_tables)


def chosen_polled(plan: Plan, names: str | None) -> Iterator[Table]:
    """Yield the polled tables that `--tables a,b` names, or all; InputError for another one."""
    yield from map(plan.polled_table, names.split(",")) if names else plan.polled


def chosen_derived(plan: Plan, names: str | None) -> Iterator[DerivedTable]:
    """Yield the derived tables that `--tables a,b` names, or all; InputError for an unknown one."""
    yield from map(plan.derived_table, names.split(",")) if names else plan.derived


def chosen_copies(plan: Plan, names: str | None) -> Iterator[HudiCopy]:
    """Yield the copies that `--tables a,b` names, or all; InputError for an unknown one."""
    yield from map(plan.copy, names.split(",")) if names else plan.copies
