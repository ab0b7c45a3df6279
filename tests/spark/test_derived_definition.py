"""Rows of a derived table are those of its definition, over types as they are stored."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdclake.derived_table import DerivedTable
from cdclake.erasures import ErasedKeys, KeyHash
from cdclake.jobs.derived import refresh as refreshing
from cdclake.jobs.operations import erasure
from cdclake.jobs.operations.erasure import TableErasure
from cdclake.jobs.table_jobs.table_job import TableJob
from cdclake.plan import Column, Table
from tests.spark.derived import DerivedLake
from tests.spark.events import Engine, FreeLeases, MemoryStore
from tests.spark.test_columns import ID, declare, event, table_of

pytestmark = pytest.mark.spark

ALL = "SELECT a.id, a.v FROM {address}_current AS a"
SOME = f"{ALL} WHERE a.id > 1"
ROWS = [(1, "a"), (2, "b")]


@dataclass
class Copied:
    """A derived table of the rows of one table."""

    engine: Engine
    control: MemoryStore = field(default_factory=MemoryStore)

    def refresh(self, table: Table) -> int:
        """Refresh under a plan with this declaration of the source."""
        name = table.name
        derived = DerivedTable(
            name=f"derived_{name}", sql=f"SELECT id, n FROM {name}_current", key=("id",),
            schedule="rate(1 hour)", sources=(name,), source_keys={name: {"id": "id"}},
        )  # fmt: skip
        plan = replace(self.engine.plan, tables=(table,), derived=(derived,))
        control: Any = self.control
        job = TableJob(plan, self.engine.lake, FreeLeases(), control, named=False)
        return refreshing.refresh(job, derived)

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the stored rows."""
        stored = self.engine.lake.read(f"derived_{self.engine.table.name}")
        return sorted(tuple(row) for row in stored.collect())


@pytest.mark.parametrize(
    ("narrow", "wide", "first", "second"),
    [
        ("numeric(10,2)", "numeric(13,2)", "1.00", "12345678901.23"),
        pytest.param("integer", "bigint", 1, 12345678901, marks=pytest.mark.slow),
    ],
)
def test_a_refresh_before_a_source_is_widened_is_not_continued(
    spark: SparkSession, narrow: str, wide: str, first: Any, second: Any
) -> None:
    """The refresh follows the plan before the stream does, which may run hours later."""
    column = Column(source="n", name="n", type=narrow)
    engine, widened = table_of(spark, column), replace(column, type=wide)
    engine.run(event(engine, "c", 10, {"n": first}))
    copied, planned = Copied(engine), replace(engine.table, columns=(ID, widened))
    assert (copied.refresh(engine.table), copied.refresh(planned)) == (1, 1)
    assert copied.refresh(planned) == 0, "nothing has changed"
    declare(engine, widened)
    engine.run(event(engine, "c", 20, {"n": second}, id=2))
    assert copied.refresh(engine.table) == 2
    assert copied.rows() == [(1, Decimal(first)), (2, Decimal(second))]


def filled(spark: SparkSession) -> DerivedLake:
    """Two rows, which the derived table has."""
    lake = DerivedLake(spark, ALL, ("id",))
    e = lake.address.event
    lake.address.run(e("c", 10, 10, id=1, v="a"), e("c", 10, 11, id=2, v="b"))
    assert lake.refresh() == 2
    return lake


def killed(point: str) -> None:
    assert point == "after_derived_commit"
    raise KeyboardInterrupt


@pytest.mark.slow
def test_a_refresh_that_is_killed_leaves_no_rows_to_the_plan_before(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its deployment is rolled back before the next refresh."""
    lake = filled(spark)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(refreshing, "reach", killed)
        lake.sql = SOME
        lake.refresh()
    assert lake.rows() == ROWS[1:]
    lake.sql = ALL
    lake.refresh()
    assert lake.rows() == ROWS


def test_an_erasure_under_the_plan_before_is_not_continued(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream goes on with its plan for minutes after a deployment."""
    monkeypatch.setattr(erasure, "CLOCK_MARGIN_S", 0.0)
    lake = filled(spark)
    older: Any = lake.job
    lake.sql = SOME
    lake.refresh()
    table = lake.address.table
    nothing = ErasedKeys(KeyHash.of(table.name, "salt"), {})
    erasing = TableErasure(
        lake=older.lake, plan=older.plan, table=table, erased=nothing, control=older.control,
        leases=older.leases,
    )  # fmt: skip
    with older.leases.hold(lake.table.name):
        erasing.run()
    assert lake.rows() == ROWS
    lake.refresh()
    assert lake.rows() == ROWS[1:]


@pytest.mark.slow
def test_a_refresh_is_noted_before_its_maintenance(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = filled(spark)
    lake.address.run(lake.address.event("c", 20, 20, id=3, v="c"))

    def fail(*_: object) -> None:
        raise RuntimeError("throttled")

    with monkeypatch.context() as patched, pytest.raises(RuntimeError, match="throttled"):
        patched.setattr(refreshing, "_MAINTAINED_EVERY_S", -1)
        patched.setattr(refreshing, "run_actions", fail)
        lake.refresh()
    assert lake.refresh() == 0
