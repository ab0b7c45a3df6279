"""Spark as the engine of `verify`: its own views over Iceberg, and the texts of every type."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.schemas import TableSchema, changes_schema, state_schema
from cdclake.iceberg.views import AppliedThrough
from cdclake.jobs.verify.compared_rows import LakeRows
from cdclake.jobs.verify.spark_engine import SparkEngine
from cdclake.jobs.verify.view_rows import compare_engines
from cdclake.naming import current_name
from cdclake.plan import Plan, Table
from tests.local.test_verify_types import assert_shown_as_in_duckdb
from tests.spark.test_views_agree import create_view
from tests.unit.verify.lakes import event, make_plan, make_table
from tests.unit.verify.small_reader import SmallReader

pytestmark = pytest.mark.spark

FLOATS = ("float", "double")


@dataclass(frozen=True)
class Bounds:
    """As much of a reader as the engine asks for: nothing is applied."""

    plan: Plan

    def applied_now(self, tables: Collection[Table]) -> dict[str, AppliedThrough]:
        return {table.name: AppliedThrough(ingested=-1) for table in tables}


@dataclass(frozen=True)
class EngineOfRows(SparkEngine):
    """The engine over a log of these rows, as Iceberg tables in the session's catalog."""

    log: Any = ()

    @contextmanager
    def open(self, tables: Collection[Table]) -> Iterator[LakeRows]:
        [table] = tables
        for schema, rows in (
            (changes_schema(table, self.reader.plan), self.log),
            (state_schema(table, self.reader.plan), []),
        ):
            create_view(self.spark, schema, [in_kinds(schema, row) for row in rows])
            name = f"lake.{self.reader.plan.lake_database}.{schema.name}"
            self.spark.sql(f"CREATE OR REPLACE TABLE {name} USING iceberg AS TABLE {schema.name}")
        with SparkEngine.open(self, tables) as rows:
            yield rows


def in_kinds(schema: TableSchema, row: dict[str, Any]) -> dict[str, Any]:
    """The row with floats where the recorded JSON has them as texts, as "NaN"."""
    kinds = dict(schema.columns)
    return {
        name: float(value) if kinds.get(name) in FLOATS and value is not None else value
        for name, value in row.items()
    }


def engine_of(spark: Any, plan: Plan, log: list[dict[str, Any]]) -> EngineOfRows:
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{plan.lake_database}")
    return EngineOfRows(spark, Bounds(plan), log=log)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.local
def test_values_of_every_type_are_compared_with_the_source(spark: Any) -> None:
    assert_shown_as_in_duckdb(partial(engine_of, spark))


@pytest.mark.slow  # by default tests/unit/verify compares views, and tests/trino Athena's
def test_a_difference_is_found_and_the_view_is_gone_afterwards(spark: Any) -> None:
    table = make_table(name="compared")
    plan = make_plan(table)
    log = [event("c", 10 * n, 10 * n + 1, id=n, v=n, big="A") for n in range(1, 5)]
    reader: Any = SmallReader(plan, [{**log[0], "v": 9}, *log[1:]])
    [found] = compare_engines(reader, [table], engine_of(spark, plan, log)).tables
    assert (found.different, found.missing, found.extra) == (1, 0, 0)
    assert not spark.catalog.tableExists(SPARK.name(current_name(table.name)))
