"""Rows of a copy, before Hudi writes them."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from cdclake.jobs.apply.rebuilt_state import applied_through
from cdclake.jobs.publish.copied_rows import StateSnapshot
from cdclake.jobs.publish.copy_stamp import KEY_COLUMN, CopyStamp
from cdclake.plan import Column
from tests.spark.events import Engine, plan_of

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("kind", ["double precision", "real"])
@pytest.mark.slow
def test_a_key_of_minus_zero_is_one_key_in_every_publication(
    spark: SparkSession, kind: str
) -> None:
    """Spark keeps the sign in a row that it reads, and drops it when it groups."""
    columns = tuple(
        Column(source=name, name=name, type=type)
        for name, type in (("id", kind), ("v", "text"), ("big", "text"))
    )
    engine = Engine(spark, plan_of(columns=columns))
    e: Any = engine.event
    engine.run(e("c", 10, 10, id=-0.0, v="a"), e("c", 11, 11, id=1.1, v="b"))
    assert keyed(opened(engine).whole()) == {("c", '["0.0"]'), ("c", '["1.1"]')}
    published = stamp(engine)
    engine.run(e("u", 20, 20, id=-0.0, v="b"), e("u", 21, 21, id=1.1, v="c"))
    assert keyed(opened(engine).since(published)) == {("u", '["0.0"]'), ("u", '["1.1"]')}
    published = stamp(engine)
    engine.run(e("d", 30, 30, id=-0.0))
    assert keyed(opened(engine).since(published)) == {("d", '["0.0"]')}


def opened(engine: Engine) -> StateSnapshot:
    """The state as it is now."""
    source = StateSnapshot.open(engine.lake, engine.table)
    assert source is not None
    return source


def stamp(engine: Engine) -> CopyStamp:
    """The stamp of a copy of the state as it is."""
    applied = applied_through(engine.lake, engine.table)
    return CopyStamp(applied.ingested, applied.floor, "", "")


def keyed(rows: DataFrame | None) -> set[tuple[str, str]]:
    """The operations and record keys."""
    assert rows is not None
    return {(row["cdc_op"], row[KEY_COLUMN]) for row in rows.collect()}
