"""A stream whose plan widens a column between two batches, or whose source has a new column."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from benchmarks.stream_fakes import FixedPlan
from cdclake.control_objects import WIDENED, WIDENED_CHANGELOGS
from cdclake.iceberg.schemas import TableSchema
from cdclake.iceberg.widening import with_widened
from cdclake.jobs.control import table_progress
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.operations.executor import OperationExecutor
from cdclake.jobs.stream.batch import MicroBatch
from cdclake.plan import Column, Plan
from cdclake.stream_requests import request_resume
from tests.spark.events import RECORD, Engine, MemoryStore, plan_of

pytestmark = pytest.mark.spark

LARGE = 3_000_000_000
COLUMNS = tuple(
    Column(source=source, name=source, type=kind)
    for source, kind in (("id", "bigint"), ("v", "integer"))
)


def test_quarantined_values_are_replayed_when_their_column_is_widened(spark: SparkSession) -> None:
    """Also if a batch under the plan before has taken an earlier request to replay them."""
    plan = plan_of(columns=COLUMNS)
    engine, control, watched = Engine(spark, plan), MemoryStore(), FixedPlan(plan)
    repairs: Any = OperationExecutor(control, {})  # type: ignore[arg-type]
    process = MicroBatch(watched, control, {}, repairs)  # type: ignore[arg-type]
    beat = (plan.heartbeat_rows_topic, 0, 0, b"{}", b'{"op": "u", "cdc_epoch": "1"}', None)

    def event(lsn: int, value: int) -> dict[str, Any]:
        made = engine.event("c", lsn, lsn, id=lsn, ts=time.time_ns() // 1000)
        made["value"]["after"] = {"id": lsn, "v": value}
        return made

    sent = [event(lsn, value) for lsn, value in ((10, 1), (20, LARGE), (30, 2))]
    records = [engine.record(offset, each) for offset, each in enumerate(sent)]
    process(spark.createDataFrame([*records, beat], RECORD), 0)
    assert len(engine.quarantined()) == 1
    watched.plan = with_widened(plan, {engine.table.name: {"v": "bigint"}})
    process(spark.createDataFrame([beat], RECORD), 1)
    rows = engine.lake.read(engine.table.name).select("id", "v").collect()
    assert {row["id"]: row["v"] for row in rows} == {10: 1, 20: LARGE, 30: 2}
    assert engine.quarantined() == []


def test_undeclared_column_stops_its_table_before_the_batch(spark: SparkSession) -> None:
    plan = replace(plan_of(columns=COLUMNS), new_columns="stop")
    engine, control = Engine(spark, plan), MemoryStore()
    repairs: Any = OperationExecutor(control, {})  # type: ignore[arg-type]
    process = MicroBatch(FixedPlan(plan), control, {}, repairs)  # type: ignore[arg-type]
    beat = (plan.heartbeat_rows_topic, 0, 0, b"{}", b'{"op": "u", "cdc_epoch": "1"}', None)

    def batch(number: int) -> TableProgress:
        sent = engine.event("c", 10 + number, 10 + number, id=number, ts=time.time_ns() // 1000)
        sent["value"]["after"] = {"id": number, "v": number}
        process(spark.createDataFrame([engine.record(number, sent), beat], RECORD), number)
        return Progress.load(control).tables[engine.table.name]  # type: ignore[arg-type]

    name = engine.table.name
    assert batch(0).is_streaming
    control.write("new_columns.json", {"tables": {name: {"more": "text"}}})
    place = batch(1)
    assert (place.is_streaming, place.columns, place.offsets) == (False, ("more",), {0: 1})
    assert "write `more: text`, or `more: {exclude: true}`" in str(place.last_error)
    request_resume(control, name)
    assert not batch(2).is_streaming  # nothing has changed
    assert [row["id"] for row in engine.log()] == [0]


def test_types_of_a_delivered_changelog_are_noted_once_it_has_them(spark: SparkSession) -> None:
    """Also by a stream that starts with the wider types: one before may have died in between."""
    plan = plan_of(columns=COLUMNS, delivery="firehose", apply="scheduled")
    engine, control = Engine(spark, plan), MemoryStore()
    beat = (plan.heartbeat_rows_topic, 0, 0, b"{}", b'{"op": "u", "cdc_epoch": "1"}', None)
    name, types = engine.table.name, {"v": "bigint"}
    control.write(WIDENED, {"tables": {name: types}})

    def process(followed: Plan) -> Any:
        repairs: Any = OperationExecutor(control, {})  # type: ignore[arg-type]
        start = MicroBatch(FixedPlan(followed), control, {}, repairs)  # type: ignore[arg-type]
        start(spark.createDataFrame([beat], RECORD), 0)
        found = control.read(WIDENED_CHANGELOGS)
        changelog = dict(engine.lake.read(engine.table.changes).dtypes)
        return found and found.content["tables"], changelog["v"]

    assert process(plan) == ({name: {"v": "integer"}}, "int")
    wider = with_widened(plan, {name: types})
    assert process(wider) == ({name: types}, "bigint")


def lose_first_change(monkeypatch: pytest.MonkeyPatch, changelog: str) -> None:
    """Let another commit come first when the stream changes this changelog's schema."""
    create = LakeTables.create

    def lose(lake: LakeTables, schema: TableSchema) -> None:
        if schema.name != changelog:
            return create(lake, schema)
        monkeypatch.setattr(LakeTables, "create", create)
        change = lake.load(changelog).updateSchema().updateColumnDoc("v", "lost")
        lake.load(changelog).updateProperties().set("committed", "first").commit()
        change.commit()

    monkeypatch.setattr(LakeTables, "create", lose)


@pytest.mark.parametrize("restarts", [False, True])
def test_delivered_changelog_is_widened_after_a_lost_commit(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, restarts: bool
) -> None:
    """Firehose commits to it too, and Iceberg repeats no change of a schema."""
    plan = plan_of(columns=COLUMNS, delivery="firehose", apply="scheduled")
    engine, control = Engine(spark, plan), MemoryStore()
    beat = (plan.heartbeat_rows_topic, 0, 0, b"{}", b'{"op": "u", "cdc_epoch": "1"}', None)
    name, types = engine.table.name, {"v": "bigint"}
    control.write(WIDENED, {"tables": {name: types}})
    monkeypatch.setattr(table_progress, "FIRST_RETRY_S", 0.0)

    def started() -> MicroBatch:
        repairs: Any = OperationExecutor(control, {})  # type: ignore[arg-type]
        wider = with_widened(plan, {name: types})
        return MicroBatch(FixedPlan(wider), control, {}, repairs)  # type: ignore[arg-type]

    def after(process: MicroBatch, batch: int) -> tuple[TableProgress, Any]:
        process(spark.createDataFrame([beat], RECORD), batch)
        found = control.read(WIDENED_CHANGELOGS)
        place = Progress.load(control).tables[name]  # type: ignore[arg-type]
        return place, found and found.content["tables"]

    lose_first_change(monkeypatch, engine.table.changes)
    process = started()
    place, noted = after(process, 0)
    assert "Version 2 already exists" in str(place.last_error)
    assert (place.is_streaming, noted) == (False, {name: {}})
    place, noted = after(started() if restarts else process, 1)
    assert (place.is_streaming, place.failures, noted) == (True, 0, {name: types})
    assert dict(engine.lake.read(engine.table.changes).dtypes)["v"] == "bigint"
