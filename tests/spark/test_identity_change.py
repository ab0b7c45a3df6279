"""Unsent values in the changelog of a table that becomes `replica_identity: full`.

The events from before the change lack values that only earlier events have.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import SparkSession

from cdclake.debezium.position import Position
from cdclake.jobs.apply.rebuilt_state import applied_through, rebuild_state
from cdclake.jobs.derived.source_snapshot import open_source
from cdclake.jobs.maintenance.changelog_compaction import Collapse
from cdclake.jobs.operations.stale_rows import count_older_values, delete_stale_rows
from cdclake.quality_rule import QualityRule, ValueLimit
from tests.spark.events import Engine
from tests.spark.test_repairs import known
from tests.spark.test_replayed_values import current

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def engine(spark: SparkSession) -> Engine:
    return Engine(spark)


def declare_full(engine: Engine) -> None:
    table = replace(engine.table, replica_identity="full")
    engine.declare(replace(engine.plan, tables=(table,)))


def derived(engine: Engine) -> dict[int, tuple[str, str]]:
    """The rows that a derived table reads."""
    open_source(engine.lake, engine.table)
    rows = engine.spark.table(f"{engine.table.name}_current").collect()
    return {row["id"]: (row["v"], row["big"]) for row in rows}


EXPECTED = {1: ("2", "LARGE")}


@pytest.fixture
def pending(engine: Engine) -> Engine:
    """A lake that has applied a large value, and then received an update without it."""
    e = engine.event
    engine.run(e("c", 10, 10, id=1, v="1", big="LARGE"))
    engine.run(e("u", 20, 20, id=1, v="2", big=...), apply_now=False)
    declare_full(engine)
    return engine


def test_views_show_a_value_that_pending_events_lack(pending: Engine) -> None:
    assert current(pending) == derived(pending) == EXPECTED


def test_apply_keeps_a_value_that_pending_events_lack(pending: Engine) -> None:
    assert pending.apply() == 1
    assert pending.state() == EXPECTED
    assert applied_through(pending.lake, pending.table).carried == ("big",)


def test_rebuild_keeps_a_value_that_events_lack(pending: Engine) -> None:
    rebuild_state(pending.lake, pending.table)
    assert pending.state() == current(pending) == derived(pending) == EXPECTED


def test_events_of_several_tasks_keep_a_value_that_they_lack(
    pending: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    e = pending.event
    pending.run(*(e("c", 30, 30, id=n, v="x") for n in range(2, 9)), apply_now=False)
    for module in ("pending_changes", "state_update"):
        monkeypatch.setattr(f"cdclake.jobs.apply.{module}.MAX_EVENTS", 2)
    pending.apply()
    assert {key: row for key, row in pending.state().items() if key == 1} == EXPECTED


def test_collapse_keeps_a_value_that_events_lack(pending: Engine) -> None:
    pending.apply()
    tomorrow = datetime.now(UTC) + timedelta(days=2)
    Collapse(
        lake=pending.lake, table=pending.table, before=tomorrow.date(), tombstones_since=tomorrow
    ).run()
    pending.run(pending.event("c", 30, 30, id=2, v="x", big="y"))
    rebuild_state(pending.lake, pending.table)
    assert pending.state() == {**EXPECTED, 2: ("x", "y")}


def test_resync_counts_values_that_events_lack(pending: Engine) -> None:
    assert count_older_values(pending.stream(), known(pending)) == 0
    position = str(Position(1, 15, 0, 15, 0))
    assert count_older_values(pending.stream(), position) == 1


def test_an_unsent_value_of_a_changed_key_stays(engine: Engine) -> None:
    e = engine.event
    engine.run(e("c", 10, 10, id=1, v="1", big="LARGE"))
    moved = [e("d", 20, 20, id=1), e("c", 20, 20, id=2, v="2", big=...)]
    engine.run(*moved, apply_now=False)
    declare_full(engine)
    expected = {2: ("2", "LARGE")}
    assert current(engine) == derived(engine) == expected
    engine.run(e("c", 30, 30, id=3, v="3", big="x"))
    expected[3] = ("3", "x")
    assert engine.state() == current(engine) == expected
    rebuild_state(engine.lake, engine.table)
    assert engine.state() == expected


def test_a_late_value_is_older_than_its_row_and_newer_than_the_carried(engine: Engine) -> None:
    e = engine.event
    engine.run(e("c", 10, 10, id=1, v="1", big="OLD"))
    engine.run(e("u", 30, 30, id=1, v="3", big=...))
    declare_full(engine)
    engine.run(e("u", 20, 20, id=1, v="2", big="LATE"), apply_now=False)
    expected = {1: ("3", "LATE")}
    assert current(engine) == derived(engine) == expected
    engine.apply()
    assert engine.state() == expected
    rebuild_state(engine.lake, engine.table)
    assert engine.state() == expected


@pytest.fixture
def unread(engine: Engine) -> Engine:
    """A lake that has a large value, and reads the later events only after the change."""
    engine.run(engine.event("c", 10, 10, id=1, v="1", big="LARGE"))
    declare_full(engine)
    return engine


def assert_lake(engine: Engine, expected: dict[int, tuple[str, str]]) -> None:
    assert engine.quarantined() == []
    assert engine.state() == current(engine) == derived(engine) == expected
    rebuild_state(engine.lake, engine.table)
    assert engine.state() == expected


def test_events_that_are_read_after_the_change_keep_a_value(unread: Engine) -> None:
    e, whole = unread.event, {"id": 1, "v": "2", "big": "LARGE"}
    unread.run(e("u", 20, 20, id=1, v="2", big=...))
    assert_lake(unread, EXPECTED)
    unread.run(e("u", 30, 30, id=1, v="3", big="LARGE", before=whole))
    assert_lake(unread, {1: ("3", "LARGE")})


def test_a_changed_key_that_is_read_after_the_change_keeps_a_value(unread: Engine) -> None:
    """The delete from before the change has no values."""
    e = unread.event
    old = {"id": 1, "v": None, "big": None}
    unread.run(e("d", 20, 20, id=1, before=old), e("c", 20, 20, id=2, v="2", big=...))
    assert_lake(unread, {2: ("2", "LARGE")})


def test_a_delete_and_its_copy_are_read_after_the_change(unread: Engine) -> None:
    e = unread.event
    gone = e("d", 20, 20, id=1, before={"id": 1, "v": None, "big": None})
    unread.run(gone, gone, e("u", 15, 15, id=1, v="2", big=...))
    assert_lake(unread, {})


def test_a_row_that_a_resync_deleted_comes_back_with_its_value(unread: Engine) -> None:
    """Its update arrives after the end of the read."""
    assert delete_stale_rows(unread.stream(), known(unread)) == 1
    assert unread.state() == {}
    unread.run(unread.event("u", 20, 20, id=1, v="2", big=...))
    assert_lake(unread, EXPECTED)


def test_a_rule_that_withholds_refuses_what_is_read_after_the_change(engine: Engine) -> None:
    e = engine.event
    engine.run(e("c", 10, 10, id=1, v="1", big="LARGE"))
    limit = ValueLimit(column="v", test="in", allowed=("1",))
    rule = QualityRule(name="in(v)", kind="rows", limit=limit)
    table = replace(engine.table, replica_identity="full", checks=(rule,))
    engine.declare(replace(engine.plan, tables=(table,)))
    engine.run(e("u", 20, 20, id=1, v="2", big="NEW"), e("u", 30, 30, id=1, v="1", big=...))
    reasons = [row["reason"].partition(":")[0] for row in engine.quarantined()]
    assert reasons == ["BROKEN_RULE", "UNSENT_VALUE"]
    assert engine.state() == {1: ("1", "LARGE")}
