"""A key that the changelog has in several texts stays one key, in every job that reads it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdclake.jobs.apply import key_changes
from cdclake.jobs.apply.rebuilt_state import rebuild_state
from cdclake.jobs.operations.oversized_rows import unread_markers
from cdclake.jobs.operations.stale_rows import (
    count_older_values,
    count_read_rows,
    delete_stale_rows,
)
from cdclake.plan import Column
from tests.spark.events import Engine, plan_of
from tests.spark.test_collapse import NOW, OLD, collapse, set_clock
from tests.spark.test_oversized import marker
from tests.spark.test_repairs import known

pytestmark = pytest.mark.spark

# type -> (text before, text after, text of the next key)
KEYS = {
    "timestamptz(3)": (
        "2024-01-01T22:04:05.120Z", "2024-01-01T22:04:05.120000Z", "2024-01-01T22:04:06.000000Z",
    ),
    "numeric(10,2)": ("1.50", "1.5000", "2.0000"),
}  # fmt: skip
OLD_TEXT, NEW_TEXT, NEXT_KEY = KEYS["timestamptz(3)"]
Live = list[tuple[Any, ...]]


def keyed(spark: SparkSession, kind: str = "timestamptz(3)", **plan: Any) -> Engine:
    """An engine whose key has this type; its ids are texts of the changelog."""
    columns = (("id", kind), ("v", "text"), ("big", "text"))
    made = plan_of(columns=tuple(Column(source=n, name=n, type=t) for n, t in columns))
    return Engine(spark, replace(made, **plan))


def event(engine: Engine, op: str, lsn: int, id: str, **how: Any) -> dict[str, Any]:
    made = engine.event(op, lsn, lsn, **how)
    made["key"] = {"id": id}
    if made["value"]["after"] is not None:
        made["value"]["after"]["id"] = id
    return made


def stored(engine: Engine) -> Live:
    """The live rows of the state: v and big."""
    rows = engine.lake.read(engine.table.name).where("NOT cdc_deleted").orderBy("id")
    return [tuple(row) for row in rows.select("v", "big").collect()]


def shown(engine: Engine) -> Live:
    """The same rows of the view."""
    return [tuple(row)[1:] for row in engine.shown()]


@pytest.mark.parametrize("version", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "kind", ["timestamptz(3)", pytest.param("numeric(10,2)", marks=pytest.mark.slow)]
)
def test_update_and_delete_under_another_text(spark: SparkSession, kind: str, version: int) -> None:
    """Format version 3 is merged by MERGE, which fails on two rows of one key."""
    engine = keyed(spark, kind, format_version=version)
    old, new, _ = KEYS[kind]
    engine.run(
        event(engine, "c", 10, old, v="1", big="A"),
        event(engine, "u", 20, new, v="2", big=...),
        apply_now=False,
    )
    assert shown(engine) == [("2", "A")]
    engine.apply()
    assert stored(engine) == shown(engine) == [("2", "A")]
    rebuild_state(engine.lake, engine.table)
    assert stored(engine) == [("2", "A")]
    engine.run(event(engine, "d", 30, new), apply_now=False)
    assert shown(engine) == []
    engine.apply()
    rebuild_state(engine.lake, engine.table)
    assert stored(engine) == []


def test_collapse_keeps_the_newest_event_of_all_texts(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = keyed(spark)
    set_clock(monkeypatch, OLD)
    engine.run(
        event(engine, "c", 10, OLD_TEXT, v="1", big="A"),
        event(engine, "u", 20, NEW_TEXT, v="2", big=...),
    )
    set_clock(monkeypatch, NOW)
    engine.run(event(engine, "c", 30, NEXT_KEY, v="3", big="B"))
    collapse(engine)
    ops = [(row["cdc_op"], row["id"], row["v"], row["big"]) for row in engine.log()]
    assert ops == [("u", NEW_TEXT, "2", "A"), ("c", NEXT_KEY, "3", "B")]
    rebuild_state(engine.lake, engine.table)
    assert stored(engine) == [("2", "A"), ("3", "B")]


@pytest.mark.slow
def test_collapse_purges_no_delete_of_a_row_that_it_keeps(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = keyed(spark)
    set_clock(monkeypatch, OLD)
    engine.run(event(engine, "c", 10, OLD_TEXT, v="1"), event(engine, "d", 20, NEW_TEXT))
    set_clock(monkeypatch, NOW - timedelta(days=100))
    engine.run(
        event(engine, "c", 30, NEXT_KEY, v="3", big="B"),
        event(engine, "d", 40, NEXT_KEY[:-4] + "Z", tx=7),
    )
    set_clock(monkeypatch, NOW)
    engine.run(event(engine, "c", 40, NEW_TEXT, v="4", big=..., tx=7))
    assert stored(engine) == [("4", "B")]
    collapse(engine)
    # The creation is not old: it still needs the delete, and all rows of its key.
    assert [row["cdc_op"] for row in engine.log()] == ["c", "d", "c"]
    rebuild_state(engine.lake, engine.table)
    assert stored(engine) == [("4", "B")]


@pytest.mark.parametrize("steps", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_values_follow_a_changed_key_under_another_text(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    monkeypatch.setattr(key_changes, "_MAX_STEPS_BACK", steps)
    engine = keyed(spark)
    engine.run(event(engine, "c", 10, NEXT_KEY, v="1", big="A"))
    engine.run(
        event(engine, "d", 20, NEXT_KEY[:-4] + "Z"),
        event(engine, "c", 20, OLD_TEXT, v="2", big=...),
    )
    moved = [
        event(engine, "d", 30, NEW_TEXT),
        event(engine, "c", 30, "2024-01-01T22:04:07Z", v="3", big=...),
    ]
    engine.run(*moved, apply_now=False)
    assert shown(engine) == [("3", "A")]
    engine.apply()
    assert stored(engine) == [("3", "A")]
    rebuild_state(engine.lake, engine.table)
    assert stored(engine) == [("3", "A")]


def test_resync_knows_a_row_under_another_text(spark: SparkSession) -> None:
    engine = keyed(spark)
    engine.run(
        event(engine, "c", 10, OLD_TEXT, v="1", big="A"), event(engine, "c", 11, NEXT_KEY, v="x")
    )
    position = known(engine)
    engine.run(
        event(engine, "r", 20, NEW_TEXT, v="2", big="B", incremental=True),
        event(engine, "u", 21, OLD_TEXT, v="3", big=...),
    )
    assert count_read_rows(engine.stream(), position) == 1
    assert count_older_values(engine.stream(), position) == 0
    assert delete_stale_rows(engine.stream(), position) == 1  # of the other key
    engine.apply()
    assert stored(engine) == [("3", "B")]
    [deleted] = [row["id"] for row in engine.log() if row["cdc_op"] == "d"]
    assert deleted == NEXT_KEY


@pytest.mark.slow
def test_resync_deletes_no_row_that_was_refused_under_another_text(spark: SparkSession) -> None:
    engine = keyed(spark)
    engine.run(event(engine, "c", 10, OLD_TEXT, v="1"))
    position = known(engine)
    refused = event(engine, "u", 20, NEW_TEXT)
    refused["value"]["after"]["v"] = {"a": 2}
    engine.run(refused, event(engine, "c", 30, NEXT_KEY, v="x"))
    assert len(engine.quarantined()) == 1
    assert delete_stale_rows(engine.stream(), position) == 0
    assert stored(engine) == [("1", None), ("x", None)]


@pytest.mark.slow
def test_resync_deletes_no_key_that_the_state_cannot_hold(spark: SparkSession) -> None:
    engine = keyed(spark)
    refused = [event(engine, "c", 5, f"+30000{n}-01-01T00:00:00Z", v="far") for n in range(2)]
    engine.run(*refused, event(engine, "c", 10, OLD_TEXT, v="1"))
    assert len(engine.quarantined()) == 2
    assert delete_stale_rows(engine.stream(), known(engine)) == 1
    assert [row["cdc_op"] for row in engine.log()] == ["c", "d"]


@pytest.mark.slow
def test_a_read_under_another_text_settles_a_marker(spark: SparkSession) -> None:
    engine = keyed(spark)
    engine.run(event(engine, "c", 10, OLD_TEXT, v="1"))
    position = known(engine)
    key, value = marker(engine, "u", 20, 20)
    engine.run(
        (key, value.replace(b'"key": {"id": 1}', b'"key": {"id": "%s"}' % OLD_TEXT.encode()))
    )
    assert len(unread_markers(engine.stream(), position)) == 1
    deletes = value.replace(b'"op": "u"', b'"op": "d"')
    engine.run(
        (key, deletes.replace(b'"key": {"id": 1}', b'"key": {"id": "%s"}' % NEW_TEXT.encode()))
    )
    assert unread_markers(engine.stream(), position) == []
    engine.run(event(engine, "r", 30, NEW_TEXT, v="2", incremental=True))
    assert unread_markers(engine.stream(), position) == []


@pytest.mark.slow
def test_events_of_several_tasks_have_one_row_of_a_key(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("pending_changes", "state_update"):
        monkeypatch.setattr(f"cdclake.jobs.apply.{module}.MAX_EVENTS", 2)
    engine = keyed(spark)
    keys = [(f"2024-01-01T22:04:{s:02}Z", f"2024-01-01T22:04:{s:02}.000Z") for s in range(8)]
    for lsn, (old, new) in enumerate(keys, 10):
        engine.run(
            event(engine, "c", lsn, old, v="1", big="A"),
            event(engine, "u", lsn + 20, new, v="2", big=...),
            apply_now=False,
        )
    engine.apply()
    assert stored(engine) == [("2", "A")] * len(keys)
