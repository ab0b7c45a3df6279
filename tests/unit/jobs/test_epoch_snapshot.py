"""When an epoch's snapshot is complete, by the heartbeats that the connector sent."""

import json

import pytest

from cdclake.debezium.position import epoch_start, reached, snapshot_start
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.control.topic_state import TopicState
from cdclake.jobs.stream.epoch_snapshot import follow_heartbeats, replaced_by
from cdclake.jobs.stream.heartbeats import SentHeartbeat
from cdclake.plan import Table

TABLE = Table(schema="public", table="t", name="t", topic="x.public.t", key=(), columns=())


def read(epoch: int, lsn: int) -> SentHeartbeat:
    return SentHeartbeat(epoch=epoch, is_read=True, lsn=lsn, sent_ms=0, committed_us=0)


def streamed(epoch: int, second: int) -> SentHeartbeat:
    return SentHeartbeat(epoch=epoch, is_read=False, lsn=99, sent_ms=1000 * second, committed_us=0)


@pytest.mark.parametrize(
    ("heartbeats", "complete"),
    [
        ([read(2, 50)], False),
        ([read(2, 50), streamed(2, 60)], False),  # its rows may still be on their way
        ([read(2, 50), streamed(2, 60), streamed(2, 64)], False),
        ([read(2, 50), streamed(2, 60), streamed(2, 65)], True),
        ([streamed(2, 60), streamed(2, 65)], True),  # no heartbeat was in the table yet
        ([streamed(1, 10), streamed(1, 20), read(2, 50)], False),
        ([streamed(1, 10), read(2, 50), streamed(2, 15)], False),
        ([read(2, 50), streamed(2, 60), read(2, 70), streamed(2, 80)], False),  # taken again
        ([read(2, 50), streamed(2, 60), read(2, 70), streamed(2, 80), streamed(2, 90)], True),
        ([streamed(1, 10), streamed(1, 20)], False),  # sent late, by the epoch before
    ],
)
def test_a_snapshot_is_complete_a_while_after_it(heartbeats, complete):
    progress = Progress(epoch=2)
    assert follow_heartbeats(progress, heartbeats) is complete


def test_a_snapshot_is_followed_over_batches_and_complete_once():
    progress = Progress(epoch=2, complete_snapshot=str(epoch_start(1)))
    assert not follow_heartbeats(progress, [read(2, 50), streamed(2, 60)])
    stored = Progress.parse(json.loads(json.dumps(progress.to_stored())))
    assert follow_heartbeats(stored, [streamed(2, 70)])
    assert stored.snapshot == str(snapshot_start(2, 50))
    stored.complete_snapshot = stored.snapshot
    assert not follow_heartbeats(stored, [streamed(2, 90)])


def test_a_snapshot_finds_the_first_epoch_of_each_topic():
    """An equal number of events says nothing: the id of the topic decides."""
    progress = Progress(epoch=1, snapshot=str(epoch_start(1)))

    def complete(epoch: int, topic_id: str | None) -> int:
        progress.epoch, progress.snapshot = epoch, str(epoch_start(epoch))
        ids = {} if topic_id is None else {TABLE.topic: topic_id}
        states = {t: TopicState(id=i, first={0: 0}, end={0: 5}) for t, i in ids.items()}
        progress.note_snapshot(states, now=1.0)
        stored = Progress.parse(json.loads(json.dumps(progress.to_stored())))
        assert stored.snapshot_topics == progress.snapshot_topics
        return stored.first_epoch(TABLE.topic)

    assert [complete(1, "a"), complete(2, "a"), complete(3, "b"), complete(4, "b")] == [1, 1, 3, 3]
    assert [complete(5, None), complete(6, "b"), complete(7, "b")] == [5, 6, 6]


def test_progress_of_an_earlier_version_has_no_topics():
    raw = Progress(epoch=3, complete_snapshot=str(epoch_start(3))).to_stored()
    del raw["snapshot_topics"]
    assert Progress.parse(raw).first_epoch(TABLE.topic) == 3
    assert Progress(epoch=1).first_epoch(TABLE.topic) == 1


def test_a_heartbeat_is_read_from_its_event():
    source = {"lsn": 7}
    event = {"op": "r", "cdc_epoch": "3", "source": source, "ts_ms": 5}
    found = SentHeartbeat.of(json.dumps(event).encode())
    assert found == SentHeartbeat(epoch=3, is_read=True, lsn=7, sent_ms=5, committed_us=0)


def test_a_table_is_swept_once_it_has_read_the_snapshot():
    place = TableProgress(offsets={0: 5}, snapshot_ends={0: 9}, swept="old")
    progress = Progress(epoch=2, complete_snapshot="new", tables={"t": place})
    behind = replaced_by(progress, TABLE, {0: (5, 8)})
    assert (behind.position, behind.is_swept) == ("old", True)
    due = replaced_by(progress, TABLE, {0: (5, 9)})
    assert (due.position, due.is_swept) == ("new", False)
    place.swept = "new"
    assert replaced_by(progress, TABLE, {0: (5, 9)}).is_swept


def test_complete_read_of_a_progress_of_an_earlier_version():
    """A table that joined after the snapshot has its position, but was not read by it."""
    swept = str(snapshot_start(2, 50))

    def read_from(place: TableProgress) -> str:
        stored = place.to_stored()
        del stored["read_from"]
        return TableProgress.parse(json.loads(json.dumps(stored))).read_from

    assert read_from(TableProgress(swept=swept, snapshot_ends={0: 9})) == swept
    assert read_from(TableProgress(swept=swept)) == ""


def test_newest_complete_read_counts():
    place = TableProgress()
    for position in (snapshot_start(2, 50), reached(2, 70), reached(2, 60)):
        place.note_complete_read(str(position))
    stored = json.loads(json.dumps(place.to_stored()))
    assert TableProgress.parse(stored).read_from == str(reached(2, 70))


def test_a_table_that_joins_after_the_snapshot_has_nothing_to_sweep():
    progress = Progress(epoch=2, complete_snapshot=str(epoch_start(2)))
    assert replaced_by(progress, TABLE, {}).is_swept
    assert not progress.is_replacing(TABLE, 2)


def test_a_table_has_old_rows_until_it_is_swept():
    progress = Progress(epoch=1, tables={"t": TableProgress(swept=str(epoch_start(1)))})
    assert not progress.is_replacing(TABLE, 1)
    assert progress.is_replacing(TABLE, 2)
    progress.tables["t"].swept = str(snapshot_start(2, 50))
    assert not progress.is_replacing(TABLE, 2)


@pytest.mark.parametrize(
    "value",
    [b"", b"null", b"{}", b"[1]", b'{"op": "u", "cdc_epoch": "x", "source": {}}', b"[" * 200_000],
    ids=lambda value: value[:9].decode(),
)
def test_a_record_that_is_no_heartbeat_is_left_out(value):
    assert SentHeartbeat.of(value) is None
