"""A table has one maintainer: whom the file names. The quarantine is always the job's."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake import naming
from cdclake.errors import InputError, TableError
from cdclake.jobs.maintenance import table_maintenance
from cdclake.jobs.maintenance.actions import MaintainedTable
from cdclake.jobs.maintenance.table_maintenance import (
    chosen_maintained,
    maintain,
    maintain_table,
    run_actions,
)
from cdclake.jobs.table_jobs.table_reports import worst_sizes
from cdclake.metrics import SNAPSHOTS
from tests.spark.events import plan_of
from tests.unit.jobs.test_retries import REPORT


def job(*, named: bool) -> Any:
    """One without a lake: a table that is not ours to maintain is not even looked at."""
    return SimpleNamespace(named=named)


@pytest.mark.parametrize("maintenance", ["glue", "none"])
def test_a_table_of_somebody_elses_is_left_alone_and_refused_by_name(maintenance):
    table = replace(plan_of().tables[0], maintenance=maintenance)
    assert maintain_table(job(named=False), table) == 0
    with pytest.raises(TableError, match=f"`maintenance: {maintenance}`"):
        maintain_table(job(named=True), table)


def test_an_action_that_fails_keeps_none_from_running(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def fail(_: MaintainedTable) -> None:
        raise TableError("t", "too large", "more workers")

    actions = {"collapse": fail, "compact": lambda _: ran.append("compact")}
    monkeypatch.setattr(table_maintenance, "ACTIONS", actions)
    lake: Any = None
    upkeep = MaintainedTable(lake, None, "t", datetime.now(UTC), timedelta(days=90))
    with pytest.raises(TableError, match="too large"):
        run_actions(upkeep)
    assert ran == ["compact"]


def test_a_changelog_that_fails_keeps_no_state_from_its_maintenance(monkeypatch):
    tried: list[str] = []

    def fail_once(upkeep: MaintainedTable) -> None:
        tried.append(upkeep.name)
        if len(tried) == 1:
            raise TableError("t", "too large", "more workers")

    monkeypatch.setattr(table_maintenance, "run_actions", fail_once)
    plan = plan_of(maintenance="own")
    of_table: Any = SimpleNamespace(
        named=False,
        lake=SimpleNamespace(check_key=lambda *_: None),
        leases=SimpleNamespace(hold=lambda _: nullcontext()),
        plan=plan,
    )
    with pytest.raises(TableError, match="too large"):
        maintain_table(of_table, plan.tables[0])
    assert tried == [plan.tables[0].changes, plan.tables[0].name]


def names(plan: Any, given: str | None) -> list[str]:
    return [each.name for each in chosen_maintained(plan, given)]


def test_the_quarantine_is_maintained_after_all_tables_or_by_name():
    plan = plan_of()
    table = plan.tables[0].name
    assert names(plan, None) == [table, naming.QUARANTINE]
    assert names(plan, table) == [table]
    assert names(plan, naming.QUARANTINE) == [naming.QUARANTINE]
    assert names(replace(plan, tables=()), None) == []
    with pytest.raises(InputError, match="no table 'other'"):
        names(plan, "other")


@pytest.mark.parametrize("exists", [True, False])
def test_the_quarantine_is_maintained_under_its_lease_once_it_exists(monkeypatch, exists):
    held: list[str] = []
    done: list[Any] = []

    def hold(name: str) -> Any:
        held.append(name)
        return nullcontext()

    monkeypatch.setattr(table_maintenance, "run_actions", done.append)
    of_quarantine: Any = SimpleNamespace(
        named=False,
        lake=SimpleNamespace(exists=lambda name: exists and name == naming.QUARANTINE),
        leases=SimpleNamespace(hold=hold),
        plan=plan_of(maintenance="none"),
    )
    [_, quarantine] = chosen_maintained(of_quarantine.plan, None)
    assert maintain(of_quarantine, quarantine) == 0
    assert [each.name for each in done] == held == [naming.QUARANTINE] * exists
    assert [each.table for each in done] == [None] * exists


def test_the_quarantine_counts_among_the_worst_sizes():
    line = replace(REPORT, table=naming.QUARANTINE, snapshots_after=7)
    assert worst_sizes(plan_of(), [line])[SNAPSHOTS] == 7
