"""Quality rules over a table's live rows: counts and keys of those that break one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

from cdclake.errors import RulesFailed
from cdclake.jobs.quality.rule_check import check_table
from cdclake.jobs.table_jobs.table_job import TableJob
from cdclake.jobs.table_jobs.table_reports import report_table
from cdclake.plan import Table
from cdclake.quality_rule import QualityRule
from tests.spark.events import Engine, FreeLeases, MemoryStore, plan_of

pytestmark = pytest.mark.spark


def job_of(
    engine: Engine, *others: Engine, checks: Sequence[QualityRule]
) -> tuple[TableJob, Table]:
    """The job, and the engine's table with these rules."""
    table = replace(engine.table, checks=tuple(checks))
    tables = (table, *(other.table for other in others))
    plan = replace(engine.plan, tables=tables)
    store = MemoryStore()
    return TableJob(plan, engine.lake, FreeLeases(), store, named=False), table  # type: ignore[arg-type]


def rows_rule(name: str, violated: str) -> QualityRule:
    return QualityRule(name=name, kind="rows", violated=violated)


def filled(spark: SparkSession) -> Engine:
    """Three live rows, one of them not applied yet, and a deleted one."""
    engine = Engine(spark, plan_of(replica_identity="full"))
    e = engine.event
    engine.run(
        e("c", 10, 10, id=1, v="a", big="1"), e("c", 10, 11, id=2, v=None, big="2"),
        e("c", 10, 12, id=3, v=None), e("d", 10, 13, id=3),
    )  # fmt: skip
    engine.run(e("c", 20, 20, id=4, v="z", big="9"), apply_now=False)
    return engine


def test_rows_that_break_a_rule_are_counted_with_their_keys(spark: SparkSession) -> None:
    engine = filled(spark)
    checks = [
        rows_rule("not_null(v)", "`v` IS NULL"),
        rows_rule("in(v)", "NOT (`v` IN ('a', 'b'))"),
        rows_rule("holds", "NOT (`big` > '0')"),
        QualityRule(name="row_count", kind="row_count", least=3, most=3),
        QualityRule(name="freshness", kind="freshness", most=60),
    ]
    job, table = job_of(engine, checks=checks)
    report = report_table(engine.lake, table, lambda: check_table(job, table))
    null, other, stale = report.failed_rules
    assert (null.rule, null.rows, null.keys) == ("not_null(v)", 1, [{"id": "2"}])
    assert (other.rule, other.rows, other.keys) == ("in(v)", 1, [{"id": "4"}])
    assert stale.rule.startswith("freshness: newest change ")  # its events are of 2023
    assert report.error is not None and "not_null(v): 1 row, such as (id = 2)" in report.error
    assert not report.will_pass


def test_rules_that_hold_report_nothing(spark: SparkSession) -> None:
    engine = filled(spark)
    checks = [rows_rule("a", "`id` > 4"), QualityRule(name="c", kind="row_count", most=3)]
    job, table = job_of(engine, checks=checks)
    assert check_table(job, table) == 0
    job, table = job_of(engine, checks=())
    assert check_table(job, table) == 0


@pytest.mark.slow
def test_a_value_without_its_row_breaks_a_reference(spark: SparkSession) -> None:
    engine, other = filled(spark), Engine(spark, plan_of(replica_identity="full"))
    other.run(other.event("c", 10, 10, id=1, v="x"), other.event("c", 10, 11, id=2, v="y"))
    rule = QualityRule(
        name="references(big)", kind="references", column="big", table=other.table.name, key="id"
    )
    job, table = job_of(engine, other, checks=[rule])
    with pytest.raises(RulesFailed) as failed:
        check_table(job, table)
    [broken] = failed.value.failed
    assert (broken.rule, broken.rows, broken.keys) == ("references(big)", 1, [{"id": "4"}])


@pytest.mark.slow
def test_too_few_rows_break_the_row_count(spark: SparkSession) -> None:
    engine = filled(spark)
    job, table = job_of(engine, checks=[QualityRule(name="rows", kind="row_count", least=9)])
    with pytest.raises(RulesFailed, match="rows: 3 rows, expected at least 9"):
        check_table(job, table)
