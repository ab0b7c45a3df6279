"""Tables whose topic was created again, resyncs whose rows never came, a killed drifting batch."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdclake.control_objects import RESYNC, outcome_name, request_name
from cdclake.debezium.position import just_after
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.requests import request_resync
from cdclake.jobs.control.topic_state import TopicState
from cdclake.jobs.operations import executor
from cdclake.jobs.operations.executor import OperationExecutor
from cdclake.jobs.operations.stale_rows import delete_stale_rows
from cdclake.jobs.stream import batch as micro_batch
from cdclake.jobs.stream.state_round import StateRound
from cdclake.jobs.stream.topic_check import TopicCheck
from tests.spark.events import RECORD, Engine, MemoryStore
from tests.spark.fed_stream import Stream

pytestmark = pytest.mark.spark


class Topics:
    """Topics that a test creates again."""

    def __init__(self, stream: Stream) -> None:
        self.found = {table.topic: self.state("first", 0) for table in stream.plan.tables}

    @staticmethod
    def state(id: str, end: int) -> TopicState:
        return TopicState(id=id, first={0: 0}, end={0: end})

    def ids(self, topics: Any) -> dict[str, str]:
        return {topic: self.found[topic].id for topic in topics}

    def states(self, topics: Any) -> dict[str, TopicState]:
        return {topic: self.found[topic] for topic in topics}


@pytest.mark.slow
def test_a_topic_that_was_created_again_stops_its_table_until_a_resync(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records at the old offsets of the new topic are in the lake then, each once."""
    stream = Stream(spark)
    one, two = stream.one, stream.two
    topics = Topics(stream)
    stream.process._topics = TopicCheck(topics)
    both = [(engine, engine.event("c", 10, 10, id=id)) for engine in (one, two) for id in (1, 2)]
    stream.run(*stream.records(*both))
    topics.found[one.table.topic] = Topics.state("second", 3)
    stream.run(*stream.records((one, one.event("c", 20, 20, id=3)), (two, two.event("d", 20, 20))))
    mine = stream.progress().table(one.table.name)
    assert (mine.is_streaming, mine.offsets) == (False, {0: 2})
    assert "was deleted and created again" in str(mine.last_error)
    assert (len(one.log()), len(two.log())) == (2, 3)

    stream.control.write(f"resume/{one.table.name}.json", {})  # without a resync: nothing changes
    stream.run()
    assert "was deleted and created again" in str(
        stream.progress().table(one.table.name).last_error
    )

    records = [one.record(n, one.event("c", 30, 30 + n, id=10 + n)) for n in range(3)]
    frame = spark.createDataFrame(records, RECORD)
    monkeypatch.setattr(micro_batch, "read_gap", lambda *_: (frame, {0: (0, 3)}))
    stream.control.write(f"resume/{one.table.name}.json", {"gap": "given up"})
    stream.run()
    mine = stream.progress().table(one.table.name)
    assert (mine.is_streaming, mine.offsets, mine.topic_id) == (True, {0: 3}, "second")
    assert "cdclake resync" in str(mine.last_error)
    assert sorted(one.state()) == [1, 2, 10, 11, 12]
    stream.start()
    stream.process._topics = TopicCheck(topics)
    stream.run(*records)  # replayed
    assert len(one.log()) == 5


@pytest.mark.parametrize("arrived", [0, 1])
def test_rows_that_never_reached_the_changelog_make_no_row_stale(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, arrived: int
) -> None:
    engine, store, progress = Engine(spark), MemoryStore(), Progress(epoch=1)
    e, name = engine.event, engine.table.name
    engine.run(*(e("c", 10, 10 + id, id=id, v="a") for id in (1, 2, 3)))
    before = engine.state()
    position = str(just_after(engine.log()[-1]["cdc_position"]))
    if arrived:
        engine.run(e("r", 20, 30, id=1, v="a", incremental=True))
    progress.table(name).offsets = {0: 9}
    ended = {"status": "SUCCEEDED", "rows": 2, "offsets": {"0": 9}}
    request = {"id": "i", "position": position, "notified": 0, "ended": ended}
    store.write(request_name(name, "resync"), request)
    monkeypatch.setattr(executor, "read_gap", lambda *_: (None, {}))
    operations = OperationExecutor(store, {})  # type: ignore[arg-type]
    nothing = spark.createDataFrame([], RECORD)
    operations.run(engine.plan, nothing, {}, progress, lambda _: engine.stream())
    error = store.stored[outcome_name(name, "resync")].content["error"]
    assert f"read 2 rows and only {arrived} of them are in the changelog" in error
    assert engine.state() == before


def test_events_that_arrive_after_the_request_are_swept_unless_above_it(
    spark: SparkSession,
) -> None:
    """The changelog was behind: row 2 vanished before the request, with its partition."""
    engine = Engine(spark)
    control: Any = MemoryStore()
    e = engine.event
    engine.run(e("c", 10, 10, id=1, v="old"))
    known = engine.log()[-1]["cdc_position"]
    request_resync(control, "t", epoch=1, known=known, notified=0, lsn=50)
    position = control.read(request_name("t", RESYNC)).content["position"]
    engine.run(
        e("c", 20, 25, id=2, v="ghost"),
        e("c", 40, 45, id=3, v="open"),  # in work at the request, committed before the signal
        e("c", 55, 48, id=4, v="window"),  # in work at the request, committed after the signal
        e("r", 55, 60, id=1, v="read", incremental=True),
        e("r", 55, 60, id=3, v="read", incremental=True),
    )
    assert delete_stale_rows(engine.stream(), position) == 1
    assert engine.state() == {1: ("read", None), 3: ("read", None), 4: ("window", None)}


@pytest.mark.slow
def test_a_column_first_seen_in_a_killed_batch_is_still_known(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The batch appends an event with the column, and dies; the replay has only events without."""
    stream = Stream(spark)
    one = stream.one
    without = one.event("u", 30, 30)
    del without["value"]["after"]["v"]
    records = stream.records((one, one.event("c", 20, 20, v="a")), (one, without))
    update_states = StateRound.run

    def dies(states: StateRound, *given: Any) -> None:
        update_states(states, *given)
        raise MemoryError("killed")

    with monkeypatch.context() as patched, pytest.raises(MemoryError):
        patched.setattr(StateRound, "run", dies)
        stream.run(*records)
    assert len(one.log()) == 1
    stream.start()
    stream.run(*records)
    mine = stream.progress().table(one.table.name)
    assert (mine.is_streaming, mine.columns, mine.offsets) == (False, ("v",), {0: 1})
    assert len(one.log()) == 1
