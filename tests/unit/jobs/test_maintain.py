"""A table has one maintainer: whom the file names."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.errors import TableError
from cdclake.jobs.maintenance import table_maintenance
from cdclake.jobs.maintenance.actions import MaintainedTable
from cdclake.jobs.maintenance.table_maintenance import maintain_table, run_actions
from tests.spark.events import plan_of


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

    actions = {"collapse": fail, "pack": lambda _: ran.append("pack")}
    monkeypatch.setattr(table_maintenance, "ACTIONS", actions)
    lake: Any = None
    upkeep = MaintainedTable(lake, None, "t", datetime.now(UTC), timedelta(days=90))
    with pytest.raises(TableError, match="too large"):
        run_actions(upkeep)
    assert ran == ["pack"]
