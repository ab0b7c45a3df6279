"""More pending changes than one update takes: several commits, each up to a time of ingestion."""

import pytest
from pyspark.sql import SparkSession

from cdclake.jobs.apply import pending_changes, state_update
from cdclake.jobs.apply.rebuilt_state import applied_through
from cdclake.jobs.apply.state_update import StateUpdate
from tests.spark.events import Engine

pytestmark = pytest.mark.spark


@pytest.fixture
def engine(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Engine:
    for module in (pending_changes, state_update):
        monkeypatch.setattr(module, "MAX_EVENTS", 3)
    return Engine(spark)


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
        *(e("u", 20, 20 + n, id=n % 5, v=str(n), big=...) for n in range(10)), apply_now=False
    )
    before = commits(engine)
    assert engine.apply() == 10
    assert commits(engine) - before == 4
    assert engine.state() == {n: (str(n + 5), None) for n in range(5)}


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
