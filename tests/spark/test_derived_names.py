"""No table replaces or continues one of the lake that another writer has created.

A source table leaves the file and keeps its rows; so does a derived table, and a put table.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from pyspark.sql import SparkSession

from cdclake.control_objects import derived_name
from cdclake.errors import TableError
from cdclake.iceberg.schemas import DERIVED_PROPERTY, changes_schema, put_schema, state_schema
from cdclake.jobs.derived.refresh import refresh
from cdclake.jobs.operations.erasure import derived_of
from cdclake.puts.put_table import PutColumn, PutTable
from tests.spark.derived import DerivedLake
from tests.spark.events import Engine, plan_of

pytestmark = pytest.mark.spark

NAMES = "SELECT a.id, a.v FROM {address}_current AS a"


def filled(spark: SparkSession) -> DerivedLake:
    lake = DerivedLake(spark, NAMES, ("id",))
    lake.address.run(lake.address.event("c", 10, 10, id=1, v="a"))
    lake.country.run(lake.country.event("c", 10, 10, id=7, v="Peru"))
    return lake


def unmarked(lake: DerivedLake) -> None:
    """Make the derived table one of an earlier version."""
    name = lake.address.lake.qualified(lake.table.name)
    lake.spark.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('{DERIVED_PROPERTY}')")


@pytest.mark.slow
def test_a_refresh_keeps_the_tables_of_a_removed_source(spark: SparkSession) -> None:
    lake = filled(spark)
    removed = lake.country.table
    lake.refresh()
    for name in (removed.name, removed.changes):
        derived = replace(lake.table, name=name)
        with pytest.raises(TableError, match="no refresh has created") as error:
            refresh(lake.job, derived)
        assert error.value.table == name
    assert (lake.country.state(), len(lake.country.log())) == ({7: ("Peru", None)}, 1)


@pytest.mark.slow
def test_the_progress_of_a_dropped_table_permits_no_state(spark: SparkSession) -> None:
    """The name went from a derived table to a source table, and back."""
    lake = filled(spark)
    derived = replace(lake.table, name=lake.country.table.name)
    lake.refresh()
    lake.control.write(derived_name(derived.name), lake.control.stored.popitem()[1].content)
    with pytest.raises(TableError, match="no refresh has created"):
        refresh(lake.job, derived)
    plan = replace(lake.job.plan, derived=(derived,))
    assert derived_of(plan, lake.address.table, lake.job.lake, lake.job.control) == []
    assert lake.country.state() == {7: ("Peru", None)}


@pytest.mark.slow
def test_a_table_of_an_earlier_version_is_known_by_its_progress(spark: SparkSession) -> None:
    lake = filled(spark)
    lake.refresh()
    unmarked(lake)
    assert lake.refresh() == 1
    assert (len(lake.snapshots()), lake.refresh()) == (2, 0)
    lake.control.stored.clear()
    found = partial(derived_of, lake.job.plan, lake.address.table, lake.job.lake, lake.job.control)
    assert found() == [lake.table]  # a refresh was killed before it noted its progress
    unmarked(lake)
    assert found() == []
    with pytest.raises(TableError, match="no refresh has created"):
        lake.refresh()


def test_a_source_table_keeps_a_removed_derived_table(spark: SparkSession) -> None:
    lake = filled(spark)
    lake.refresh()
    plan, before = lake.country.plan, lake.rows()
    for schema in (state_schema, changes_schema):
        taken = replace(schema(lake.country.table, plan), name=lake.table.name)
        with pytest.raises(TableError, match="the lake has a derived table of this name"):
            lake.address.lake.create(taken)
    assert lake.rows() == before


def test_a_source_table_keeps_a_removed_put_table(spark: SparkSession) -> None:
    engine = Engine(spark, plan_of())
    column = PutColumn(source="id", name="id", type="bigint")
    put = put_schema(PutTable(name=f"put_{engine.table.name}", columns=(column,)))
    engine.lake.create(put)
    for schema in (state_schema, changes_schema):
        taken = replace(schema(engine.table, engine.plan), name=put.name)
        with pytest.raises(TableError, match="has no cdc_position"):
            engine.lake.create(taken)
    assert engine.lake.read(put.name).columns == ["id", "arrived_at"]
