"""The Spark text of the views says what the DuckDB text says, on the same rows.

By default one case of each kind: the catalogue's cases read the Spark text, too.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from pyspark.errors import UnsupportedOperationException

from cdclake.iceberg.ddl import create_table
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.merge import merge_changes
from cdclake.iceberg.schemas import TableSchema, changes_schema, state_schema
from cdclake.iceberg.tail_facts import TailFacts, tail_facts, view_over_tail
from cdclake.iceberg.views import AppliedThrough, current_view
from cdclake.local.aws.aws_server import DurableAws
from tests.spark.glue_catalog import glue_session, serving
from tests.unit.verify.cases import CASES
from tests.unit.verify.key_changes import KEY_CHANGES
from tests.unit.verify.lakes import make_plan, make_table

pytestmark = pytest.mark.spark


def create_view(spark: Any, schema: TableSchema, rows: Iterable[Mapping[str, Any]]) -> None:
    """A temporary view of these rows; times are microseconds."""
    given = ", ".join(
        f"`{name}` {'bigint' if kind == 'timestamp' else kind}" for name, kind in schema.columns
    )
    values = [tuple(row.get(name) for name, _ in schema.columns) for row in rows]
    raw = spark.createDataFrame(values, given)
    columns = [
        f"timestamp_micros(`{name}`) AS `{name}`" if kind == "timestamp" else f"`{name}`"
        for name, kind in schema.columns
    ]
    raw.selectExpr(*columns).createOrReplaceTempView(schema.name)


BY_DEFAULT = {"a changed key whose value is in the tail"}  # DuckDB runs all of them


def test_cases_by_default_exist() -> None:
    assert {*CASES, *KEY_CHANGES} >= BY_DEFAULT


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=() if case in BY_DEFAULT else pytest.mark.slow)
        for case in (*CASES, *KEY_CHANGES)
    ],
)
def test_current(spark, case):
    facts, log, state, applied, expected = (CASES | KEY_CHANGES)[case]
    table = make_table(**facts)
    plan = make_plan(table)
    create_view(spark, changes_schema(table, plan), log)
    create_view(spark, state_schema(table, plan), state)
    relations = {"state": "t", "changes": "t_changes", "applied": applied, "dialect": SPARK}
    facts = tail_facts(table, changes="t_changes", applied=applied, dialect=SPARK)
    known = view_over_tail(table, TailFacts(*spark.sql(facts).collect()[0]), **relations)
    for view in {current_view(table, **relations), known}:
        assert [tuple(row) for row in spark.sql(view).orderBy("id").collect()] == expected


def test_predicates_on_the_key_reach_every_scan(spark):
    table = make_table()
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.plans")
    for schema in (state_schema(table, make_plan(table)), changes_schema(table, make_plan(table))):
        spark.sql(create_table("plans", schema))

    def scans_and_joins(tail: TailFacts) -> tuple[list[str], list[str]]:
        view = view_over_tail(
            table, tail, state="lake.plans.t", changes="lake.plans.t_changes",
            applied=AppliedThrough(10), dialect=SPARK,
        )  # fmt: skip
        plan = spark.sql(f"SELECT * FROM ({view}) AS v WHERE id = 7")._jdf.queryExecution()
        lines = plan.sparkPlan().toString().splitlines()
        return (
            [line for line in lines if "BatchScan" in line],
            [line for line in lines if "Join" in line],
        )

    scans, joins = scans_and_joins(TailFacts(events=1))
    assert (len(scans), len(joins)) == (4, 2)
    assert all("id = 7" in scan for scan in scans)
    assert not any("FullOuter" in join for join in joins)
    scans, joins = scans_and_joins(TailFacts())
    assert (len(scans), joins) == (1, [])


def test_the_deployed_catalog_stores_no_views(spark, tmp_path):
    """Why `<t>_current` is a temporary view in Spark (docs/reading.md)."""
    with serving(DurableAws(tmp_path)) as url:
        session = glue_session(spark, url)
        session.sql("CREATE DATABASE lake.views")
        with pytest.raises(UnsupportedOperationException, match="not supported by catalog: lake"):
            session.sql("CREATE VIEW lake.views.v AS SELECT 1 AS one")


MERGED = ("a late real value is newer than the one that was carried",)


@pytest.mark.slow  # the catalogue's cases compare the same by default
def test_merged_state_reads_like_the_log(spark):
    """Applied or not yet applied, `_current` is the same: the merge and the view agree."""
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.merged")
    for number, case in enumerate(MERGED):
        facts, log, _, _, _ = CASES[case]
        table = make_table(name=f"t{number}", **facts)
        plan = make_plan(table)
        schema = state_schema(table, plan)
        spark.sql(create_table("merged", schema))
        create_view(spark, changes_schema(table, plan), log)
        views = [
            current_view(
                table, state=f"lake.merged.t{number}", changes=table.changes,
                applied=AppliedThrough(through), dialect=SPARK,
            )
            for through in (0, 10)
        ]  # fmt: skip
        before = spark.sql(views[0]).toJSON().collect()
        for _ in range(2):  # a repeated merge changes nothing
            spark.sql(merge_changes(table, "merged", table.changes, table.toastable))
        assert spark.sql(views[1]).toJSON().collect() == before, case
