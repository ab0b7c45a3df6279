"""Large values that key changes leave unsent: they go along over any number of them, and late."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.views import current_view
from cdclake.jobs.apply.state_table import applied_through, rebuild_state
from cdclake.jobs.maintenance.changelog_compaction import Collapse
from cdclake.jobs.operations import replay
from cdclake.jobs.operations.replay import replay_quarantine
from cdclake.plan import Column
from tests.spark.events import Engine, plan_of

pytestmark = pytest.mark.spark

NOW = datetime.now(UTC)
NUMBERS = (
    Column(source="id", name="id", type="bigint"),
    Column(source="v", name="v", type="numeric(5,2)"),
    Column(source="big", name="big", type="text"),
)


@pytest.fixture
def numbers(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """A table that refuses numbers too large for it; its events of 2023 are not too old."""
    monkeypatch.setattr(replay, "YOUNG", NOW - datetime(2023, 1, 1, tzinfo=UTC))
    return Engine(spark, plan_of(columns=NUMBERS))


def moved(engine: Engine, first: int, last: int, v: str) -> list[Any]:
    """The key goes up from `first` to `last` by one, in one transaction each."""
    return [
        event
        for key in range(first, last)
        for event in (
            engine.event("d", key * 10, key * 10 + 5, id=key),
            engine.event("c", key * 10, key * 10 + 5, id=key + 1, v=v, big=...),
        )
    ]


def current(engine: Engine) -> dict[int, tuple[Any, ...]]:
    view = current_view(
        engine.table,
        state=engine.lake.qualified(engine.table.name),
        changes=engine.lake.qualified(engine.table.changes),
        applied=applied_through(engine.lake, engine.table),
        dialect=SPARK,
    )
    return {row["id"]: (row["v"], row["big"]) for row in engine.spark.sql(view).collect()}


def assert_is(engine: Engine, expected: dict[int, tuple[Any, ...]]) -> None:
    """The state, the view, and a state that is rebuilt from the changelog hold these rows."""
    assert engine.state() == current(engine) == expected
    missing = engine.lake.read(engine.table.name).where("cdc_toast_missing IS NOT NULL").collect()
    assert missing == []
    rebuild_state(engine.lake, engine.table)
    assert engine.state() == expected


def test_a_chain_of_any_length_keeps_its_value(spark: SparkSession) -> None:
    engine = Engine(spark)
    engine.run(engine.event("c", 1, 2, id=1, v="x", big="LARGE"))
    engine.run(*moved(engine, 1, 80, "y"), apply_now=False)
    assert current(engine) == {80: ("y", "LARGE")}
    engine.run(*moved(engine, 80, 82, "y"))
    assert_is(engine, {82: ("y", "LARGE")})
    engine.run(*moved(engine, 82, 83, "z"))
    assert_is(engine, {83: ("z", "LARGE")})


def test_a_replayed_creation_gives_its_value_to_later_keys(numbers: Engine) -> None:
    e = numbers.event
    numbers.run(e("c", 5, 6, id=1, v="NaN", big="LARGE"), *moved(numbers, 1, 3, "5.00"))
    numbers.run(*moved(numbers, 3, 4, "6.00"), e("u", 50, 51, id=4, v="7.00", big=...))
    assert numbers.state()[4][1] is None
    numbers.declare(replace(numbers.plan, not_representable="null"))
    replay_quarantine(numbers.batch(apply_now=False), epoch=1)
    assert [str(value) for value in current(numbers)[4]] == ["7.00", "LARGE"]
    numbers.run(e("c", 60, 61, id=9, v="1.00", big=""))
    [v, _] = numbers.state()[4]
    assert_is(numbers, {4: (v, "LARGE"), 9: (numbers.state()[9][0], "")})


def test_a_replayed_update_replaces_an_older_value_under_later_keys(numbers: Engine) -> None:
    e = numbers.event
    numbers.run(e("c", 2, 3, id=1, v="1.00", big="OLD"), e("u", 5, 6, id=1, v="NaN", big="NEW"))
    numbers.run(*moved(numbers, 1, 3, "5.00"))
    [v, big] = numbers.state()[3]
    assert big == "OLD"
    numbers.declare(replace(numbers.plan, not_representable="null"))
    replay_quarantine(numbers.batch(), epoch=1)
    assert_is(numbers, {3: (v, "NEW")})


def test_a_collapsed_changelog_keeps_the_values_of_longer_chains(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(spark)
    old = int((NOW - timedelta(days=200)).timestamp() * 1_000_000) * 1000
    with monkeypatch.context() as patch:
        patch.setattr("cdclake.jobs.iceberg.commit_metadata.time.time_ns", lambda: old)
        engine.run(engine.event("c", 1, 2, id=1, v="x", big="LARGE"), *moved(engine, 1, 4, "y"))
    engine.run(*moved(engine, 4, 5, "z"))
    Collapse(
        lake=engine.lake,
        table=engine.table,
        before=(NOW - timedelta(days=90)).date(),
        tombstones_since=NOW - timedelta(days=14),
    ).run()
    assert len(engine.log()) == 4  # the key before the newest one, and the newest key change
    rebuild_state(engine.lake, engine.table)
    assert engine.state() == {5: ("z", "LARGE")}
