"""A row gets no value of an earlier row of its key: by row deltas, by MERGE and in a rebuild."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.jobs.apply.rebuilt_state import rebuild_state
from cdclake.jobs.iceberg.delta_handle import DeltaHandle
from tests.spark.events import Engine

pytestmark = [pytest.mark.spark, pytest.mark.slow]  # by default a task does so without Spark


@pytest.mark.parametrize("takes_deltas", [True, False], ids=["deltas", "merge"])
@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "in-the-same-update"])
def test_a_changed_key_had_another_row(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, takes_deltas: bool, is_stored: bool
) -> None:
    """The events that have the value, those of the row's old key, are not in the changelog."""
    monkeypatch.setattr(DeltaHandle, "takes_deltas", takes_deltas)
    engine = Engine(spark)
    first = engine.event("c", 10, 10, id=1, v="1", big="a")
    rest = [engine.event("d", 20, 20, id=1), engine.event("c", 30, 30, id=1, v="2", big=...)]
    for batch in [[first], rest] if is_stored else [[first, *rest]]:
        engine.run(*batch)
    assert state(engine) == [("2", None, ["big"])]
    rebuild_state(engine.lake, engine.table)
    assert state(engine) == [("2", None, ["big"])]


def state(engine: Engine) -> list[tuple[str, str | None, list[str] | None]]:
    rows = engine.lake.read(engine.table.name).select("v", "big", naming.TOAST_MISSING)
    return [tuple(row) for row in rows.collect()]
