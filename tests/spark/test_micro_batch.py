"""A batch over several tables: one that stops, one that was left half done, one that is empty."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest
from pyspark.sql import SparkSession

from cdclake.errors import Fenced, ServiceUnavailable
from cdclake.iceberg import snapshot_tags
from cdclake.iceberg.schemas import TableSchema
from cdclake.jobs.control.table_life import Held, Resuming
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.maintenance import snapshot_expiration as kept
from cdclake.jobs.stream import batch as micro_batch
from cdclake.jobs.stream import inline_compaction, inline_expiration, table_stream
from cdclake.jobs.stream.apply_scheduler import ApplyScheduler
from cdclake.jobs.stream.batch import MicroBatch
from cdclake.jobs.stream.state_round import StateRound
from cdclake.jobs.stream.table_stream import Outcome, TableStream
from tests.spark.events import RECORD, Engine, MemoryStore, deletes_to_open
from tests.spark.fed_stream import BEAT_US, Stream

pytestmark = pytest.mark.spark


@pytest.fixture
def stream(spark: SparkSession) -> Stream:
    return Stream(spark)


def retried(stream: Stream, engine: Engine) -> TableProgress:
    """Try the held table again in a new process; Kafka has no record that it missed."""
    stream.start()
    place = stream.process._progress.table(engine.table.name)
    assert isinstance(place.life, Held)
    place.life = replace(place.life, retry_at=1.0)
    nothing = stream.spark.createDataFrame([], RECORD)
    with patch.object(micro_batch, "read_gap", lambda *_: (nothing, {})):
        stream.run()
    return stream.progress().table(engine.table.name)


def snapshots(engine: Engine) -> list[int]:
    names = (engine.table.name, engine.table.changes, "cdclake_quarantine")
    return [len(list(engine.lake.load(name).snapshots())) for name in names]


def test_the_table_with_the_most_records_comes_first(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    def append(one: TableStream, *_: Any, **how: Any) -> Any:
        begun.append(one.table.name)
        return Outcome(appended=0, quarantined=0)

    monkeypatch.setattr(TableStream, "append", append)
    stream.process._commits = ThreadPoolExecutor(1)
    event = stream.two.event("c", 0, 1)
    stream.run(*stream.records((stream.one, event), (stream.two, event), (stream.two, event)))
    assert begun == [stream.two.table.name, stream.one.table.name]


def test_what_the_states_took_of_a_batch_is_known_for_the_next(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[dict[str, Any]] = []
    monkeypatch.setattr(ApplyScheduler, "note_batch", lambda _, **batch: noted.append(batch))
    stream.run(*stream.records((stream.one, stream.one.event("c", 10, 10, v="a"))))
    [batch] = noted
    assert (batch["busy"], batch["states"]) == (True, 1)
    assert 0 < batch["merging"] < batch["seconds"]
    stream.run()
    assert (noted[1]["busy"], noted[1]["states"], noted[1]["merging"]) == (False, 0, 0)


@pytest.mark.slow
def test_states_are_packed_while_they_stream_one_in_a_batch(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is packed is what was there."""
    monkeypatch.setattr(inline_compaction, "COMPACT_EVERY_N_COMMITS", 5)
    both = (stream.one, stream.two)

    def batch(number: int) -> None:  # each puts a row in the place of the one before
        events = [(e, e.event("u", number, number, v=str(number))) for e in both]
        stream.run(*stream.records(*events))

    for number in range(10, 14):
        batch(number)
    assert [sorted(deletes_to_open(e)) for e in both] == [[0, 1, 1, 1]] * 2
    batch(14)
    packed, not_yet = sorted((sorted(deletes_to_open(e)) for e in both), key=len)
    assert (packed, not_yet) == ([0], [0, 1, 1, 1, 1])
    batch(15)
    assert sorted(sorted(deletes_to_open(e)) for e in both) == [[0], [0, 1]]
    assert [e.state() for e in both] == [{1: ("15", None)}] * 2
    assert [len(e.log()) for e in both] == [6, 6]


@pytest.mark.slow
def test_snapshots_are_thinned_while_they_stream_of_one_table_in_a_batch(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Stream(spark, stream_readers_hours=0)
    monkeypatch.setattr(snapshot_tags, "EVERY", timedelta(seconds=1))
    monkeypatch.setattr(kept, "KEEP_EVERY_COMMIT_FOR", timedelta(seconds=0))
    both = (stream.one, stream.two)

    def snapshots_of() -> list[tuple[bool, bool]]:  # log and state of each: whether any has a tag
        return [
            tuple(
                each.lake.load(name).refs().size() > 1
                for name in (each.table.changes, each.table.name)
            )
            for each in both
        ]

    for number in range(10, 14):
        stream.run(
            *stream.records(*((e, e.event("u", number, number, v=str(number))) for e in both))
        )
        time.sleep(1)
    assert snapshots_of() == [(True, True)] * 2
    assert [e.state() for e in both] == [{1: ("13", None)}] * 2


def test_the_quarantine_is_thinned_while_they_stream(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    thinned: list[str] = []
    monkeypatch.setattr(
        inline_expiration, "remove_old_snapshots", lambda _lake, name, *_: thinned.append(name)
    )
    stream.run()
    assert thinned.count("cdclake_quarantine") == 1


def test_a_new_table_that_cannot_be_created_is_held_back_alone(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = stream.one, stream.two
    stream.spark.sql(f"DROP TABLE lake.cdc.{one.table.changes}")
    create = LakeTables.create

    def throttled(lake: LakeTables, schema: TableSchema) -> None:
        if schema.name == one.table.changes:
            raise ServiceUnavailable("Glue: Rate exceeded")
        create(lake, schema)

    with monkeypatch.context() as patch:
        patch.setattr(LakeTables, "create", throttled)
        stream.run(*stream.records((two, two.event("c", 10, 10, v="a"))))
    assert isinstance(stream.progress().tables[one.table.name].life, Held)
    assert two.state() == {1: ("a", None)}


def test_what_a_batch_shuffles_ends_in_as_many_tasks_as_there_are_cores(stream: Stream) -> None:
    """And not in Spark's 200: within a streaming query's batch nothing brings those together."""
    setting, spark = "spark.sql.shuffle.partitions", stream.spark
    before = str(spark.conf.get(setting))
    spark.conf.set(setting, "200")
    try:
        stream.run(*stream.records((stream.one, stream.one.event("c", 10, 10, v="a"))))
        assert spark.conf.get(setting) == str(spark.sparkContext.defaultParallelism)
    finally:
        spark.conf.set(setting, before)


def test_a_process_killed_between_tables_goes_on_with_those_that_lack_the_batch(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F2."""
    one, two = stream.one, stream.two
    records = stream.records(
        (one, one.event("c", 10, 10, v="a")), (one, one.event("u", 20, 20, v="b")),
        (two, two.event("c", 11, 11, v="x")), (two, two.event("d", 21, 21)),
    )  # fmt: skip
    append = TableStream.append

    def dies_at_two(self: TableStream, *args: Any, **how: Any) -> Any:
        if self.table == two.table:
            raise MemoryError("killed")
        return append(self, *args, **how)

    with monkeypatch.context() as patched, pytest.raises(MemoryError):
        patched.setattr(TableStream, "append", dies_at_two)
        stream.run(*records)
    assert (len(one.log()), len(two.log()), one.state()) == (2, 0, {})
    done = snapshots(one)[1]
    stream.start()
    stream.run(*records)
    assert (len(one.log()), len(two.log()), snapshots(one)[1]) == (2, 2, done)
    assert (one.state(), two.state()) == ({1: ("b", None)}, {})


def test_a_table_that_refuses_too_much_stops_alone_and_catches_up(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F8."""
    one, two = stream.one, stream.two
    bad = [(one, (b'{"id": 7}', b"{rubbish")) for _ in range(3)]
    first = stream.records((one, one.event("c", 10, 10, v="a")), *bad, (two, two.event("c", 1, 1)))
    stream.run(*first)
    mine = stream.progress().table(one.table.name)
    assert (mine.is_streaming, mine.quarantined, mine.offsets) == (False, 3, {0: 4})
    assert mine.last_error is not None and "3 events refused" in mine.last_error
    gap = stream.records((one, one.event("u", 20, 20, v="b")), (two, two.event("c", 2, 2, id=2)))
    stream.run(*gap)
    stream.start()  # and it is still stopped
    more = stream.records((one, one.event("u", 30, 30, v="c")), (two, two.event("c", 3, 3, id=3)))
    stream.run(*more)
    assert (one.state(), len(one.log()), len(two.state())) == ({1: ("a", None)}, 1, 3)
    assert stream.progress().table(one.table.name).offsets == {0: 4}

    missed = [record for record in (*gap, *more) if record[0] == one.table.topic]
    frame = stream.spark.createDataFrame(missed, RECORD)
    asked = []

    def read_gap(*args: Any) -> Any:
        asked.append(dict(args[3]))
        return frame, {0: (4, 6)}

    monkeypatch.setattr(micro_batch, "read_gap", read_gap)
    stream.control.write(f"resume/{one.table.name}.json", {})
    stream.run()
    mine = stream.progress().table(one.table.name)
    assert (mine.is_streaming, mine.quarantined, mine.last_error) == (True, 0, None)
    assert asked == [{0: 4}]
    assert ([row["cdc_lsn"] for row in one.log()], one.state()) == ([10, 20, 30], {1: ("c", None)})
    assert len(one.quarantined()) == 3


@pytest.mark.parametrize("lost", ["lost_checkpoint", "lost_progress"])
@pytest.mark.slow
def test_a_table_whose_next_records_kafka_has_deleted_stops_before_the_hole(
    stream: Stream, lost: str
) -> None:
    """The stream begins where Kafka does; of a lost progress the log's stamp takes the place."""
    one, two = stream.one, stream.two
    stream.run(*stream.records((one, one.event("c", 10, 10, v="a")), (two, two.event("c", 1, 1))))
    if lost == "lost_progress":
        stream.control = MemoryStore()
    stream.offsets[one.table.topic] = 4
    stream.start()
    stream.run(*stream.records((one, one.event("u", 50, 50, v="e")), (two, two.event("d", 2, 2))))
    mine = stream.progress().table(one.table.name)
    assert (mine.is_streaming, mine.offsets) == (False, {0: 1})
    assert mine.last_error is not None and "records 1-3 of partition 0" in mine.last_error
    assert (one.state(), two.state()) == ({1: ("a", None)}, {})


@pytest.mark.slow
def test_rows_before_the_first_heartbeat_are_swept_with_the_next_epoch(stream: Stream) -> None:
    """The first snapshot reads an empty table of heartbeats."""
    one = stream.one
    rows = stream.records(*((one, one.event("r", 10, 10, id=id, v="a")) for id in (1, 2)))
    stream.run(*rows, epoch=None)
    stream.run()  # and nothing but heartbeats from then on
    assert [row["cdc_op"] for row in one.log()] == ["r", "r"]
    again = stream.records((one, one.event("r", 0, 5, id=1, v="b", epoch=2)))
    stream.run(*again, epoch=2)
    stream.run(stream.beat(2, sent_s=10), epoch=None)
    assert one.state() == {1: ("b", None)}


def test_what_is_sent_again_from_before_the_first_heartbeat_is_not_written_twice(
    stream: Stream,
) -> None:
    one = stream.one
    first = one.event("c", 10, 10, v="a"), one.event("u", 20, 20, v="b")
    stream.run(*stream.records(*((one, event) for event in first)), epoch=None)
    stamp = ChangesStamp.from_json(str(one.lake.stamped(one.table.changes).stamp))
    assert (stamp.epoch, stamp.lsn_marks) == (1, {0: 20}), "the next must search"
    stream.run(*stream.records((one, first[1]), (one, one.event("u", 30, 30, v="c"))))
    assert [row["cdc_lsn"] for row in one.log()] == [10, 20, 30]


def test_a_table_that_lacks_a_file_stops_alone(stream: Stream) -> None:
    one, two = stream.one, stream.two
    events = [(engine, engine.event("c", 10, 10, v="a")) for engine in (one, two)]
    stream.run(*stream.records(*events))
    files = one.spark.table(f"lake.cdc.{one.table.name}.files").collect()
    for file in files:
        Path(file["file_path"].removeprefix("file:")).unlink()
    stream.start()  # a slow machine's next batch may be late, and leave the states alone
    events = [(engine, engine.event("u", 20, 20, v="b", big=...)) for engine in (one, two)]
    stream.run(*stream.records(*events))
    mine = stream.progress().table(one.table.name)
    assert (mine.is_streaming, mine.offsets) == (False, {0: 2})  # the changelog has the event
    assert len(one.log()) == 2
    assert mine.last_error is not None and "is missing" in mine.last_error
    assert two.state() == {1: ("b", None)}
    assert [retried(stream, one).failures for _ in range(4)] == [2, 3, 4, 5]


def test_a_held_table_applies_what_its_state_lacked_before_a_restart(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = stream.one
    with monkeypatch.context() as patched:
        patched.setattr(StateRound, "_request", Mock(side_effect=MemoryError("killed")))
        with pytest.raises(MemoryError):
            stream.run(*stream.records((one, one.event("c", 10, 10, v="a"))))
    place = stream.process._progress.table(one.table.name)
    place.hold("S3 does not answer", 0.0)
    stream.process._progress.save(stream.process._control)
    place = retried(stream, one)
    assert (len(one.log()), one.state()) == (1, {1: ("a", None)})
    assert (place.is_streaming, place.failures) == (True, 0)


def test_a_request_to_resume_outlives_a_batch_that_does_not_end(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = stream.one
    stream.run(*stream.records(*((one, (b'{"id": 7}', b"{rubbish")) for _ in range(3))))
    stream.control.write(f"resume/{one.table.name}.json", {})
    with monkeypatch.context() as patched, pytest.raises(MemoryError):
        patched.setattr(MicroBatch, "_append_all", Mock(side_effect=MemoryError("killed")))
        patched.setattr(MicroBatch, "_gap_work", lambda *_: [])
        stream.run()
    assert isinstance(stream.progress().table(one.table.name).life, Resuming)


def test_a_batch_that_brings_nothing_makes_no_snapshot(stream: Stream) -> None:
    """F9: heartbeats only, and the empty records that follow deletes."""
    one = stream.one
    stream.run(*stream.records((one, one.event("c", 10, 10, v="a")), (one, one.event("d", 20, 20))))
    before = snapshots(one), snapshots(stream.two)
    stream.run()
    stream.run(*stream.records((one, (b'{"id": 1}', None))))
    assert (snapshots(one), snapshots(stream.two)) == before
    assert stream.progress().table(one.table.name).offsets == {0: 3}
    assert stream.progress().heartbeat_committed_us == BEAT_US  # what freshness is told by


def test_a_fenced_stream_ends_and_stops_no_table(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fenced(*_: object, **__: object) -> None:
        raise Fenced("another stream has written")

    one = stream.one
    records = stream.records((one, one.event("c", 10, 10, v="a")))
    with monkeypatch.context() as patched, pytest.raises(Fenced):
        patched.setattr(table_stream, "commit_files", fenced)
        stream.run(*records)
    places = stream.progress().tables.values()  # only the columns that it saw are known
    assert {(place.is_streaming, place.last_error, *place.offsets) for place in places} == {
        (True, None)
    }
    stream.start()
    stream.run(*records)
    assert one.state() == {1: ("a", None)}
