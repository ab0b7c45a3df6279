"""More pending changes than one update takes: several commits, each up to a time of ingestion."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from cdclake.jobs.apply import pending_changes, state_update
from cdclake.jobs.apply.rebuilt_state import applied_through
from cdclake.jobs.apply.state_job import update_by_rows
from cdclake.jobs.apply.state_task import WrittenState
from cdclake.jobs.apply.state_update import StateUpdate
from tests.spark.events import Engine, plan_of

pytestmark = pytest.mark.spark


@pytest.fixture
def engine(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Engine:
    for module in (pending_changes, state_update):
        monkeypatch.setattr(module, "MAX_EVENTS", 3)
    return Engine(spark)


@pytest.mark.slow
def test_each_commit_is_stamped_with_what_it_has(engine: Engine) -> None:
    e = engine.event
    for batch in range(4):
        first = 10 * (batch + 1)
        events = [e("c", first, first + n, id=2 * batch + n, v=str(batch)) for n in range(2)]
        engine.run(*events, apply_now=False)
    update, through, seen = StateUpdate(engine.lake, engine.table), [], []
    newest = engine.stream().read_changelog().stamp.ingested_through
    while (request := update.request(newest)) is not None:
        through.append(request.pending.through)
        assert engine.apply(through[-1]) == 2
        update.forget()
        assert applied_through(engine.lake, engine.table).ingested == through[-1]
        seen.append(len(engine.state()))
    assert (seen, through[-1]) == ([2, 4, 6, 8], newest)


def test_changes_of_one_ingestion_are_divided_by_their_keys(engine: Engine) -> None:
    e = engine.event
    engine.run(*(e("c", 10, 10 + n, id=n, v="a") for n in range(3)))
    engine.run(
        *(e("u", 20, 20 + n, id=n % 8, v=str(n), big=...) for n in range(16)), apply_now=False
    )
    before = commits(engine)
    assert engine.apply() == 16
    assert commits(engine) - before == 3
    assert engine.state() == {n: (str(n + 8), None) for n in range(8)}


@pytest.mark.parametrize("deletes", ["hard", "soft"])
@pytest.mark.slow
def test_events_of_one_key_are_reduced_to_those_with_its_values(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, deletes: str
) -> None:
    """They cannot be divided by their keys, however many they are."""
    engine = Engine(engine.spark, plan_of(deletes=deletes))
    held: list[int] = []

    def update(changes: DataFrame, *target: Any) -> WrittenState:
        held.append(changes.count())
        return update_by_rows(changes, *target)

    monkeypatch.setattr(state_update, "update_by_rows", update)
    e = engine.event
    engine.run(
        e("c", 10, 10, v="0", big="first"),
        *(e("u", 10, 20 + n, v=str(n), big="second") for n in range(20)),
        *(e("u", 10, 50 + n, v=str(n), big=...) for n in range(20)),
        e("c", 10, 11, id=2, v="a", big="b"), e("d", 10, 80, id=2, before={"id": 2}),
        apply_now=False,
    )  # fmt: skip
    before = commits(engine)
    assert engine.apply() == 43
    assert sum(held) == 5 and commits(engine) - before == len(held) == 2
    assert engine.state()[1] == ("19", "second")


def test_changes_whose_values_need_too_much_memory_are_divided(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The value is in the file once, which has a thirtieth of its size in memory."""
    for module in (pending_changes, state_update):
        monkeypatch.setattr(module, "MAX_EVENTS", 500_000)
        monkeypatch.setattr(module, "MAX_DECODED_BYTES", 250_000)
    e, value = engine.event, "x" * 10_000
    engine.run(*(e("c", 10, 10 + n, id=n, v=value) for n in range(60)), apply_now=False)
    before = commits(engine)
    assert engine.apply() == 60
    assert commits(engine) - before == 3
    assert engine.state() == dict.fromkeys(range(60), (value, None))


def test_rows_that_another_tool_has_deleted_stay_out(engine: Engine) -> None:
    e, changelog = engine.event, f"lake.cdc.{engine.table.changes}"
    by_position = "SET TBLPROPERTIES ('write.delete.mode'='merge-on-read')"
    engine.spark.sql(f"ALTER TABLE {changelog} {by_position}")
    engine.run(e("c", 10, 10, v="a"), e("c", 10, 11, id=2, v="b"), apply_now=False)
    engine.spark.sql(f"DELETE FROM {changelog} WHERE id = 2")
    assert engine.apply() == 1
    assert engine.state() == {1: ("a", None)}


def test_nothing_pending_is_no_commit(engine: Engine) -> None:
    engine.run(engine.event("c", 10, 10, v="a"))
    before = commits(engine)
    assert engine.apply() == 0
    assert commits(engine) == before


def commits(engine: Engine) -> int:
    return engine.spark.table(f"lake.cdc.{engine.table.name}.snapshots").count()
