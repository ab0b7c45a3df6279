"""A new epoch: readers keep the rows of before until its snapshot is complete."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import time
from typing import Any, NoReturn

import pytest
from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.control_objects import ResumeRequest
from cdclake.debezium.position import epoch_start, history_part, snapshot_start
from cdclake.firehose.arrival import DELIVERY_S
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.views import current_view
from cdclake.jobs.apply import prepared_changes
from cdclake.jobs.apply.firehose_changelog import swept_below
from cdclake.jobs.apply.rebuilt_state import applied_through
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.control.topic_state import SnapshotTopic, TopicState
from cdclake.jobs.stream.epoch_snapshot import EpochSnapshot
from cdclake.jobs.stream.table_stream import Replaced
from tests.spark.events import Engine, plan_of
from tests.spark.fed_stream import Stream

COMPLETE = Replaced(str(epoch_start(2)), is_swept=False)
RUNNING = Replaced()


class TopicEnds:
    """Topics that end where the test says."""

    def __init__(self, ends: Mapping[str, int]) -> None:
        self.ends = ends

    def ids(self, topics: Sequence[str]) -> Mapping[str, str]:
        del topics
        return {}

    def states(self, topics: Sequence[str]) -> Mapping[str, TopicState]:
        known = [topic for topic in topics if topic in self.ends]
        return {t: TopicState(id=t, first={0: 0}, end={0: self.ends[t]}) for t in known}


@pytest.fixture
def stream(spark: SparkSession) -> Stream:
    made = Stream(spark)
    one, two = made.one, made.two
    rows = [(one, one.event("r", 0, 9, id=id, v="old")) for id in (1, 2)]
    made.run(*made.records(*rows, (two, two.event("r", 0, 9, id=3, v="old"))))
    made.run(made.beat(1, sent_s=10), epoch=None)
    return made


def ops(engine: Engine) -> list[str]:
    return [row[naming.OP] for row in engine.log()]


def test_old_rows_stay_until_the_snapshot_is_complete(stream: Stream) -> None:
    one, two = stream.one, stream.two
    stream.run(stream.beat(2, "r", lsn=50), epoch=None)
    new = one.event("r", 0, 50, id=1, v="new", epoch=2)
    stream.run(*stream.records((one, new)), epoch=None)
    assert one.state() == {1: ("new", None), 2: ("old", None)}
    stream.run(stream.beat(2, sent_s=60), epoch=None)  # streamed: the snapshot was sent
    stream.run(stream.beat(2, sent_s=62), epoch=None)
    assert ({*one.state()}, {*two.state()}) == ({1, 2}, {3})
    assert all(stream.progress().is_replacing(engine.table, 2) for engine in (one, two))
    stream.run(stream.beat(2, sent_s=70), epoch=None)
    assert (one.state(), two.state()) == ({1: ("new", None)}, {})
    assert (ops(one), ops(two)) == (["r", "r", "t", "r"], ["r", "t"])
    assert stream.progress().table(two.table.name).read_from == str(snapshot_start(2, 50))
    assert not any(stream.progress().is_replacing(engine.table, 2) for engine in (one, two))
    stream.run(stream.beat(2, sent_s=80), epoch=None)
    stream.start()
    stream.run(stream.beat(2, sent_s=90), epoch=None)
    assert (ops(one), ops(two)) == (["r", "r", "t", "r"], ["r", "t"])


@pytest.mark.slow
def test_rows_still_in_kafka_delay_the_sweep_of_their_table(stream: Stream) -> None:
    one, two = stream.one, stream.two
    stream.process._epochs = EpochSnapshot(TopicEnds({one.table.topic: 4, two.table.topic: 1}))
    rows = [one.event("r", 0, 50, id=id, v="new", epoch=2) for id in (1, 4)]
    stream.run(*stream.records((one, rows[0])), stream.beat(2, "r", lsn=50), epoch=None)
    stream.run(stream.beat(2, sent_s=60), stream.beat(2, sent_s=70), epoch=None)
    assert ({*one.state()}, {*two.state()}) == ({1, 2}, set())
    stream.start()  # the ends are in the progress
    stream.run(*stream.records((one, rows[1])), epoch=None)
    assert one.state().keys() == {1, 4}


@pytest.mark.slow
def test_a_snapshot_that_is_taken_again_replaces_its_first_rows(stream: Stream) -> None:
    one = stream.one
    first = [one.event("r", 0, 50, id=id, v="new", epoch=2) for id in (1, 5)]
    stream.run(
        *stream.records(*((one, row) for row in first)), stream.beat(2, "r", lsn=50), epoch=None
    )
    again = one.event("r", 0, 60, id=1, v="newer", epoch=2)  # 5 was deleted in between
    stream.run(stream.beat(2, "r", lsn=60), *stream.records((one, again)), epoch=None)
    change = one.event("u", 0, 70, id=1, v="newest", epoch=2)
    stream.run(*stream.records((one, change)), stream.beat(2, sent_s=60), epoch=None)
    assert one.state().keys() == {1, 2, 5}
    stream.run(stream.beat(2, sent_s=70), epoch=None)
    assert one.state() == {1: ("newest", None)}


@pytest.mark.slow
def test_a_retake_after_a_streamed_heartbeat_starts_over(stream: Stream) -> None:
    one = stream.one
    stream.run(stream.beat(2, "r", lsn=50), stream.beat(2, sent_s=60), epoch=None)
    stream.run(stream.beat(2, "r", lsn=60), stream.beat(2, sent_s=90), epoch=None)
    assert one.state().keys() == {1, 2}
    stream.run(stream.beat(2, sent_s=96), epoch=None)
    assert one.state() == {}


@pytest.mark.slow
def test_a_stopped_table_is_swept_when_it_has_read_its_gap(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = stream.one
    place = stream.process._progress.table(one.table.name)
    place.stop("a test")
    stream.process._epochs = EpochSnapshot(TopicEnds({one.table.topic: 3}))
    [record] = stream.records((one, one.event("r", 0, 50, id=1, v="new", epoch=2)))
    stream.run(record, stream.beat(2, sent_s=60), stream.beat(2, sent_s=70), epoch=None)
    assert one.state().keys() == {1, 2}
    gap = stream.spark.createDataFrame([record], "topic string, partition int, offset bigint,"
        " key binary, value binary, headers array<struct<key: string, value: binary>>")  # fmt: skip
    monkeypatch.setattr("cdclake.jobs.stream.batch.read_gap", lambda *_: (gap, {0: (2, 3)}))
    place.ask_to_resume(ResumeRequest())
    stream.run(stream.beat(2, sent_s=80), epoch=None)
    assert one.state() == {1: ("new", None)}


def snapshots(engine: Engine) -> list[int]:
    """The ids of the state's snapshots, in order."""
    name = engine.lake.qualified(engine.table.name)
    rows = engine.spark.sql(f"SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at")
    return [row[0] for row in rows.collect()]


def keys_at(engine: Engine, snapshot: int) -> set[int]:
    """The keys of the state's live rows in a snapshot."""
    rows = engine.lake.read(engine.table.name, snapshot).where("NOT cdc_deleted")
    return {row["id"] for row in rows.collect()}


def current(engine: Engine) -> dict[int, Any]:
    lake, table = engine.lake, engine.table
    select = current_view(
        table, state=lake.qualified(table.name), changes=lake.qualified(table.changes),
        applied=applied_through(lake, table), dialect=SPARK,
    )  # fmt: skip
    return {row["id"]: row["v"] for row in engine.spark.sql(select).collect()}


@pytest.fixture(params=[2, pytest.param(3, marks=pytest.mark.slow)])
def engine(spark: SparkSession, request: pytest.FixtureRequest) -> Engine:
    """Return an engine that applies by row deltas, or by MERGE."""
    return Engine(spark, replace(plan_of(), format_version=request.param))


@pytest.mark.slow
def test_a_late_state_never_lacks_the_rows_of_both_sides(engine: Engine) -> None:
    """The snapshot's rows and the sweep are applied at once, as `apply: scheduled` does."""
    e = engine.event
    engine.run(*(e("r", 0, 9, id=id, v="old") for id in (1, 2, 3)))
    new = [e("r", 0, 50, id=id, v="new", epoch=2) for id in (1, 2)]
    engine.run(*new, epoch=2, apply_now=False, replaced=RUNNING)
    assert current(engine) == {1: "new", 2: "new", 3: "old"}
    engine.run(epoch=2, apply_now=False, replaced=COMPLETE)
    assert current(engine) == {1: "new", 2: "new"}
    assert engine.state().keys() == {1, 2, 3}
    before = snapshots(engine)
    engine.apply()
    added = [each for each in snapshots(engine) if each not in before]
    assert [keys_at(engine, each) for each in added] == [{1, 2, 3}, {1, 2}, {1, 2}]
    assert engine.state() == {1: ("new", None), 2: ("new", None)}
    assert current(engine) == {1: "new", 2: "new"}


@pytest.mark.slow
def test_a_value_of_the_epoch_before_does_not_pass_for_a_new_one(engine: Engine) -> None:
    """The snapshot's row was refused, and a change of it did not send the large value."""
    e = engine.event
    engine.run(e("r", 0, 9, v="old", big="OLD"))
    engine.run(e("u", 0, 60, v="new", big=..., epoch=2), epoch=2, replaced=RUNNING)
    assert engine.state() == {1: ("new", "OLD")}
    engine.run(epoch=2, replaced=COMPLETE)
    assert engine.state() == {1: ("new", None)}
    [row] = engine.lake.read(engine.table.name).collect()
    assert row[naming.TOAST_MISSING] == ["big"]
    engine.run(e("r", 0, 50, v="read", big="NEW", epoch=2), epoch=2)  # replayed
    assert engine.state() == {1: ("new", "NEW")}


@pytest.mark.slow
def test_a_crash_before_the_rebuild_does_not_keep_such_a_value(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    e = engine.event
    engine.run(e("r", 0, 9, v="old", big="OLD"))
    engine.run(e("u", 0, 60, v="new", big=..., epoch=2), epoch=2, replaced=RUNNING)
    with monkeypatch.context() as patched:
        patched.setattr(prepared_changes, "rebuild_state", crash)
        with pytest.raises(RuntimeError, match="crashed"):
            engine.run(epoch=2, replaced=COMPLETE)
    engine.run(epoch=2, replaced=COMPLETE)
    assert engine.state() == {1: ("new", None)}


def crash(*_: object, **__: object) -> NoReturn:
    raise RuntimeError("crashed")


@pytest.mark.slow
def test_a_delivered_table_is_swept_when_its_changelog_has_the_rows(spark: SparkSession) -> None:
    engine = Engine(spark)
    # As many events as the snapshot has rows: their number does not show which topic had them.
    engine.run(*(engine.event("r", 0, 9, id=id) for id in range(1, 6)))
    place = TableProgress(snapshot_ends={0: 5, 1: 0})
    start, ended = str(snapshot_start(2, 50)), time()
    progress = Progress(
        complete_snapshot=start, completed_at=ended, tables={engine.table.name: place}
    )

    def below(since: int | None, now: float = ended + 1000) -> str:
        known = {} if since is None else {engine.table.topic: SnapshotTopic("id", since)}
        progress.snapshot_topics = known
        return swept_below(engine.lake, progress, engine.table, [engine.table], now, 60)

    assert below(since=1) == history_part(start)  # kept: the offsets continue
    assert [below(since=2), below(since=None)] == ["", ""]  # lost, or perhaps so
    assert below(since=None, now=ended + 1 + DELIVERY_S) == history_part(start)
    engine.run(*(engine.event(op, 9, 50, id=1, epoch=2) for op in "rd"), epoch=2)
    place.snapshot_ends[0] = 8  # a tombstone follows the delete
    assert [below(since=2), below(since=None)] == [history_part(start)] * 2
    place.snapshot_ends[0] = 9
    assert [below(since=1), below(since=2)] == ["", ""]
    assert swept_below(engine.lake, Progress(), engine.table, [engine.table], ended, 0) == ""


def test_a_delivered_table_keeps_its_rows_while_its_append_is_retried(spark: SparkSession) -> None:
    """Another table of its topic has the snapshot's last rows, by a commit of its own."""
    engine, other = Engine(spark), Engine(spark)
    engine.run(engine.event("r", 0, 9, id=1, v="old"))
    other.run(*(other.event("r", 0, 50, id=id, epoch=2) for id in (2, 3)), epoch=2, offset=7)
    place, now = TableProgress(snapshot_ends={0: 9}), time()
    progress = Progress(
        complete_snapshot=str(snapshot_start(2, 50)),
        completed_at=now,
        tables={engine.table.name: place},
    )

    def below(after_s: float) -> str:
        tables = [engine.table, other.table]
        return swept_below(engine.lake, progress, engine.table, tables, now + after_s, 900)

    assert below(600) == ""
    assert below(1000) == history_part(progress.complete_snapshot)
