"""Events that leave quarantine fill what later events carried on to other keys.

By default the views' cases show the same, and test_repairs.py replays other events.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdclake.debezium.refusals import TOO_OLD
from cdclake.iceberg.schemas import changes_schema, state_schema
from cdclake.jobs.apply.rebuilt_state import rebuild_state
from cdclake.jobs.operations.replay import replay_quarantine
from cdclake.plan import Column
from tests.spark.derived import refreshes
from tests.spark.events import Engine, plan_of
from tests.spark.test_copied_rows import opened, stamp

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LARGE = 3_000_000_000
NOW_US = time.time_ns() // 1000  # an old event would be refused
COLUMNS = tuple(
    Column(source=source, name=source, type=kind)
    for source, kind in (("id", "bigint"), ("v", "integer"), ("big", "text"))
)
SCRIPTS = {
    "an insert": ([("c", 5, 1, LARGE, "A")], {2: (7, "A")}),
    "an update": ([("c", 4, 1, 1, "old"), ("u", 5, 1, LARGE, "A")], {2: (7, "A")}),
}


def current(engine: Engine) -> dict[int, tuple[Any, ...]]:
    return {row["id"]: (row["v"], row["big"]) for row in engine.shown()}


def widened(engine: Engine) -> None:
    columns = tuple(
        replace(column, type="bigint") if column.name == "v" else column
        for column in engine.table.columns
    )
    table = replace(engine.table, columns=columns)
    engine.declare(replace(engine.plan, tables=(table,)))
    for schema in (changes_schema(table, engine.plan), state_schema(table, engine.plan)):
        engine.lake.create(schema)


@pytest.mark.parametrize("applied", [True, False])
@pytest.mark.parametrize("script", SCRIPTS)
def test_replayed_event_fills_moved_row(spark: SparkSession, script: str, applied: bool) -> None:
    events, expected = SCRIPTS[script]
    engine = Engine(spark, plan_of(columns=COLUMNS))
    for op, lsn, key, value, big in events:
        engine.run(engine.event(op, lsn, lsn, id=key, v=value, big=big, ts=NOW_US))
    assert len(engine.quarantined()) == 1
    engine.run(
        engine.event("d", 10, 10, id=1), engine.event("c", 10, 10, id=2, v=6, big=...),
        engine.event("u", 11, 11, id=2, v=7, big=...),
    )  # fmt: skip
    widened(engine)
    replay_quarantine(engine.stream(apply_now=applied), epoch=1)
    assert engine.quarantined() == []
    assert current(engine) == expected
    if applied:
        assert engine.state() == expected
    rebuild_state(engine.lake, engine.table)
    assert engine.state() == expected


def test_late_event_fills_moved_row_in_derived_tables_and_copies(spark: SparkSession) -> None:
    """It has the old key; the row that it changes has the new one."""
    engine = Engine(spark, plan_of())
    e, refreshed = engine.event, refreshes(engine, "id, v, big")
    engine.run(e("d", 10, 20, id=1, tx=9), e("c", 10, 20, id=2, v="x", big=..., tx=9))
    assert refreshed() == [(2, "x", None)]
    published = stamp(engine)
    engine.run(e("c", 5, 6, id=1, v="x", big="A", tx=3))
    assert engine.state() == {2: ("x", "A")}
    assert refreshed() == [(2, "x", "A")]
    changed = opened(engine).since(published)
    assert changed is not None
    rows = {(row["id"], row["cdc_op"], row["big"]) for row in changed.collect()}
    assert rows == {(1, "d", None), (2, "c", "A")}


def test_replayed_event_is_not_older_than_a_collapse(spark: SparkSession) -> None:
    """A collapse gives the older value to the newest event: a rebuild would lose the replayed."""
    engine = Engine(spark, plan_of(columns=COLUMNS, deletes="soft"))
    old = NOW_US - 100 * 86_400 * 1_000_000
    for op, lsn, v, big in (("c", 10, 1, "v0"), ("u", 20, LARGE, "v1"), ("u", 30, 3, ...)):
        engine.run(engine.event(op, lsn, lsn, id=1, v=v, big=big, ts=old))
    widened(engine)
    done = replay_quarantine(engine.stream(), epoch=1)
    assert (done.replayed, done.refused) == (0, {TOO_OLD: 1})
    engine.declare(replace(engine.plan, history_days=200))
    assert replay_quarantine(engine.stream(), epoch=1).replayed == 1
    assert current(engine) == {1: (3, "v1")}
