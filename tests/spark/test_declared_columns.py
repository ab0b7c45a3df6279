"""Jobs whose plan is older or newer than the tables that the stream evolves meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdclake.errors import TableError
from cdclake.jobs.apply import prepared_changes
from cdclake.jobs.apply.rebuilt_state import applied_through, rebuild_state
from cdclake.jobs.apply_changes import apply_table
from cdclake.jobs.rebuild_tables import rebuild_table
from cdclake.jobs.table_jobs.table_job import TableJob
from cdclake.plan import Column, Table
from tests.spark.events import Engine, FreeLeases, MemoryStore, plan_of
from tests.spark.firehose_log import FirehoseLog
from tests.spark.test_columns import ID, MAIL, declare, event, rows, table_of
from tests.spark.test_epochs import COMPLETE, RUNNING
from tests.spark.test_firehose_log import rows as delivered_rows

pytestmark = pytest.mark.spark

NARROW = Column(source="n", name="n", type="numeric(10,2)")
WIDE = replace(NARROW, type="numeric(13,2)")
EARLIER, LATER = {"n": "1.00"}, {"n": "12345678901.23"}
CHANGES: dict[str, tuple[tuple[Column, ...], dict[str, str]]] = {
    "widened": ((WIDE,), LATER),
    "added": ((NARROW, MAIL), {**EARLIER, "mail": "a@example.org"}),
}
Work = Callable[[TableJob, Table], int]
WORK = [apply_table, pytest.param(rebuild_table, marks=pytest.mark.slow)]


def job_of(engine: Engine) -> TableJob:
    """A job that starts now."""
    store: Any = MemoryStore()
    return TableJob(engine.plan, engine.lake, FreeLeases(), store, named=True)


def texts(engine: Engine, *names: str) -> dict[int, tuple[str, ...]]:
    found = rows(engine, *names)
    return {key: tuple(str(value) for value in values) for key, values in found.items()}


@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("change", CHANGES)
def test_job_with_an_older_plan_applies_no_event_of_a_newer_one(
    spark: SparkSession, change: str, work: Work
) -> None:
    engine = table_of(spark, NARROW)
    engine.run(event(engine, "c", 10, EARLIER))
    job, old = job_of(engine), engine.table
    columns, values = CHANGES[change]
    declare(engine, *columns)
    engine.run(event(engine, "u", 20, values), apply_now=False)
    applied = applied_through(engine.lake, engine.table)
    with pytest.raises(TableError, match="start the job again"):
        work(job, old)
    assert applied_through(engine.lake, engine.table) == applied
    work(job_of(engine), engine.table)
    assert texts(engine, *values) == {1: tuple(values.values())}


def test_job_with_a_newer_plan_applies_what_fits_it(spark: SparkSession) -> None:
    """A stream that widens the columns later has appended only values of the narrower type."""
    engine = table_of(spark, NARROW)
    engine.run(event(engine, "c", 10, EARLIER), apply_now=False)
    for columns, is_applied in (((NARROW, MAIL), False), ((WIDE,), True)):
        table = replace(engine.table, columns=(ID, *columns))
        job = replace(job_of(engine), plan=replace(engine.plan, tables=(table,)))
        if is_applied:
            assert apply_table(job, table) == 1
        else:
            with pytest.raises(TableError, match="columns of this job's plan: mail"):
                apply_table(job, table)
    assert texts(engine, "n") == {1: ("1.00",)}
    table = replace(engine.table, columns=(ID, NARROW, MAIL))
    assert apply_table(job_of(engine), table) == 0, "nothing is to be applied"


@pytest.mark.slow
def test_rebuild_of_a_sweep_reads_no_event_of_a_newer_plan(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job's check has seen neither the event nor the wider column."""
    big = Column(source="big", name="big", type="text")
    engine = table_of(spark, NARROW, big)
    unsent = {"big": engine.plan.placeholder}
    engine.run(event(engine, "r", 10, {**EARLIER, "big": "OLD"}))
    engine.run(event(engine, "u", 60, {"n": "2.00", **unsent}, epoch=2), epoch=2, replaced=RUNNING)
    engine.run(epoch=2, replaced=COMPLETE, apply_now=False)
    job, old = job_of(engine), engine.table

    def evolved(*given: Any, **how: Any) -> int:
        declare(engine, WIDE, big)
        later = event(engine, "u", 70, {**LATER, **unsent}, epoch=2)
        engine.run(later, epoch=2, apply_now=False)
        return rebuild_state(*given, **how)

    with monkeypatch.context() as patched:
        patched.setattr(prepared_changes, "rebuild_state", evolved)
        apply_table(job, old)
    assert texts(engine, "n", "big") == {1: ("2.00", "None")}
    apply_table(job_of(engine), engine.table)
    assert texts(engine, "n", "big") == {1: (LATER["n"], "None")}


@pytest.mark.parametrize("work", WORK)
def test_job_with_an_older_plan_applies_no_delivered_row_of_a_newer_one(
    spark: SparkSession, work: Work
) -> None:
    log = FirehoseLog(spark, plan_of(columns=(ID, NARROW), apply="scheduled"))
    engine = log.engine

    def commit(op: str, lsn: int, values: dict[str, str]) -> None:
        made = engine.event(op, lsn, lsn)
        made["value"]["after"] = {"id": 1, **values}
        log.commit(delivered_rows(log, made, first=lsn))

    commit("c", 10, EARLIER)
    job, old = job_of(engine), log.table
    assert apply_table(job, old) == 1
    declare(engine, WIDE)
    log.plan = engine.plan
    commit("u", 20, LATER)
    applied = applied_through(engine.lake, log.table)
    with pytest.raises(TableError, match="start the job again"):
        work(job, old)
    assert applied_through(engine.lake, log.table) == applied
    work(job_of(engine), log.table)
    assert texts(engine, "n") == {1: (LATER["n"],)}
