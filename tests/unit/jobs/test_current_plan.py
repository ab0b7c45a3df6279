"""Plan of a job over many tables: it is read again for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake import naming
from cdclake.jobs.table_jobs import table_job, table_reports
from cdclake.jobs.table_jobs.chosen_tables import chosen_tables
from cdclake.jobs.table_jobs.table_job import TableJob, run_over_tables
from cdclake.plan import Column, Plan, Table
from tests.spark.events import MemoryStore
from tests.unit.verify.lakes import make_plan, make_table

ARGUMENTS = {"JOB_NAME": "j", "plan": "s3://b/plan.json", "control": "s3://b/control", "run": "r"}


def plans() -> Iterator[Plan]:
    """Yield a plan, and later that of a source that has widened a column."""
    table = make_table()
    yield make_plan(table)
    wider = Column(source="v", name="v", type="bigint")
    columns = tuple(wider if column.name == "v" else column for column in table.columns)
    while True:
        yield make_plan(make_table(columns=columns))


def test_table_is_processed_by_the_current_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    found, store = plans(), MemoryStore()
    watcher = SimpleNamespace(read=lambda: next(found))
    for name, value in {
        "read_arguments": lambda *_: ARGUMENTS,
        "ObjectStore": lambda _: store,
        "PlanWatcher": lambda *_: watcher,
        "open_session": lambda _: None,
        "LakeTables": lambda *_: None,
    }.items():
        monkeypatch.setattr(table_job, name, value)
    monkeypatch.setattr(table_reports, "size_of", lambda *_: table_reports.Size(1, 1, 1))
    done: list[tuple[str, str]] = []

    def work(job: TableJob, table: Table) -> int:
        [declared] = job.plan.tables
        done.append((declared.columns[1].type, table.columns[1].type))
        return 0

    assert run_over_tables(naming.APPLY_JOB, work, chosen_tables) == 0
    assert done == [("bigint", "bigint")]
    report: Any = store.read(naming.report_name("r"))
    assert report.content["ok"]
