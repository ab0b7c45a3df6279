"""A row gets no value of an earlier row of its key: by row deltas, by MERGE and in a rebuild."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.jobs.apply.rebuilt_state import rebuild_state
from cdclake.jobs.iceberg.delta_handle import DeltaHandle
from tests.spark.events import Engine

pytestmark = [pytest.mark.spark, pytest.mark.slow]  # by default a task does so without Spark


DELETED_ROW = [("c", 10, "1", "a"), ("d", 20, None, None)]
# The events that have the value, those of a changed key's old one, are not in the changelog.
CREATED = ("c", 30, "2", ...)
# Its creation is in the quarantine, as with a value that the lake cannot hold.
UPDATED = ("u", 40, "2", ...)


@pytest.mark.parametrize("event", [CREATED, UPDATED], ids=["created", "creation-refused"])
@pytest.mark.parametrize("takes_deltas", [True, False], ids=["deltas", "merge"])
@pytest.mark.parametrize("is_stored", [True, False], ids=["stored", "in-the-same-update"])
def test_a_key_had_another_row(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    takes_deltas: bool,
    is_stored: bool,
    event: tuple[str, int, Any, Any],
) -> None:
    monkeypatch.setattr(DeltaHandle, "takes_deltas", takes_deltas)
    engine = Engine(spark)
    former = [made(engine, each) for each in DELETED_ROW]
    newest = made(engine, event)
    for batch in [former, [newest]] if is_stored else [[*former, newest]]:
        engine.run(*batch)
    assert state(engine) == [("2", None, ["big"])]
    rebuild_state(engine.lake, engine.table)
    assert state(engine) == [("2", None, ["big"])]


@pytest.mark.parametrize("takes_deltas", [True, False], ids=["deltas", "merge"])
@pytest.mark.parametrize("batches", [[(0,), (1, 2)], [(0, 2), (1,)]], ids=["with-next", "late"])
def test_the_delete_of_a_stored_row_comes_with_the_next_row_or_after_it(
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    takes_deltas: bool,
    batches: list[tuple[int, ...]],
) -> None:
    monkeypatch.setattr(DeltaHandle, "takes_deltas", takes_deltas)
    engine = Engine(spark)
    events = [made(engine, each) for each in (*DELETED_ROW, UPDATED)]
    for batch in batches:
        engine.run(*(events[number] for number in batch))
    assert state(engine) == [("2", None, ["big"])]
    rebuild_state(engine.lake, engine.table)
    assert state(engine) == [("2", None, ["big"])]


def made(engine: Engine, event: tuple[str, int, Any, Any]) -> Any:
    op, at, v, big = event
    return engine.event(op, at, at, id=1, **({} if op == "d" else {"v": v, "big": big}))


def state(engine: Engine) -> list[tuple[str, str | None, list[str] | None]]:
    rows = engine.lake.read(engine.table.name).select("v", "big", naming.TOAST_MISSING)
    return [tuple(row) for row in rows.collect()]
