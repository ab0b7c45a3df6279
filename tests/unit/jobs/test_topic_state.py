"""A table's offsets against the topic that Kafka has now, and the checkpoint against all topics."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.control_objects import ResumeRequest
from cdclake.errors import Fenced
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.control.topic_state import TopicState, lost_records
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp
from cdclake.jobs.stream.append import next_stamp
from cdclake.jobs.stream.checkpoint import DamagedCheckpoint, find_problem
from cdclake.jobs.stream.topic_check import TopicCheck, accept_topic
from tests.spark.events import MemoryStore, plan_of

PLAN = plan_of()
[TABLE] = PLAN.tables
KAFKA = TopicState(id="now", first={0: 5, 1: 0}, end={0: 9, 1: 0})


class FixedTopics:
    """Kafka with the table's topic."""

    def __init__(self, state: TopicState = KAFKA, topic: str = TABLE.topic) -> None:
        self.found = {topic: state}

    def ids(self, topics: Any) -> dict[str, str]:
        return {topic: self.found[topic].id for topic in topics if topic in self.found}

    def states(self, topics: Any) -> dict[str, TopicState]:
        return {topic: self.found[topic] for topic in topics if topic in self.found}


@pytest.mark.parametrize(
    ("offsets", "topic_id", "reason"),
    [
        ({0: 5, 1: 0}, "now", None),
        ({0: 9}, "", None),  # an earlier version remembered no id
        ({0: 4}, "now", "records 4-4 of partition 0 expired from Kafka"),
        ({0: 10}, "now", "ends at offset 9 of partition 0, before offset 10"),
        ({0: 7, 1: 0}, "before", "was deleted and created again: its id is now, it was before"),
        ({2: 1}, "now", "ends at offset 0 of partition 2"),
    ],
)
def test_records_that_kafka_lacks_are_named(
    offsets: dict[int, int], topic_id: str, reason: str | None
) -> None:
    found = lost_records("t", TableProgress(offsets=offsets, topic_id=topic_id), KAFKA)
    assert (found is None) if reason is None else (found is not None and reason in found)


def test_a_topic_that_changes_while_the_stream_runs_stops_its_table() -> None:
    """Its offsets are compared once; later the id alone tells."""
    topics, progress = FixedTopics(), Progress()
    check = TopicCheck(topics)
    assert list(check.problems(PLAN, progress)) == []
    place = progress.table(TABLE.name)
    assert (place.topic_id, place.offsets) == ("now", {0: 5, 1: 0})
    topics.found[TABLE.topic] = TopicState(id="later", first={0: 0}, end={0: 100})
    [(table, error)] = check.problems(PLAN, progress)
    assert table == TABLE
    assert error.remedy.startswith(f"run `cdclake resync {TABLE.name}`")
    assert place.topic_id == "now"  # until the table is read again


@pytest.mark.parametrize(("stamp", "offsets"), [({}, {}), (None, {0: 5, 1: 0})])
def test_a_table_that_rejoins_reads_on_where_the_query_is(
    stamp: dict[str, Any] | None, offsets: dict[int, int]
) -> None:
    """The query has passed what its topic held; for a new table these records are the first."""
    progress, check = Progress(), TopicCheck(FixedTopics())
    stamped = SimpleNamespace(stamp=stamp)
    lake: Any = SimpleNamespace(exists=lambda _: True, stamped=lambda _: stamped)
    check.note_rejoining(PLAN, progress, lake)
    assert list(check.problems(PLAN, progress)) == []
    place = progress.table(TABLE.name)
    assert (place.topic_id, place.offsets) == ("now", offsets)


@pytest.mark.parametrize("offset", [4, 10])
def test_offsets_that_kafka_does_not_reach_stop_a_table_at_the_start(offset: int) -> None:
    progress = Progress()
    progress.table(TABLE.name).offsets[0] = offset
    [(table, _)] = TopicCheck(FixedTopics()).problems(PLAN, progress)
    assert table == TABLE


def test_a_stopped_table_is_not_stopped_again() -> None:
    progress = Progress()
    progress.table(TABLE.name).topic_id = "before"
    progress.table(TABLE.name).stop("why")
    assert list(TopicCheck(FixedTopics()).problems(PLAN, progress)) == []


def test_offsets_of_another_topic_are_not_taken_over() -> None:
    other = TableProgress(offsets={0: 7, 1: 0}, topic_id="before")
    accept_topic(other, KAFKA)
    assert (other.topic_id, other.offsets) == ("now", {0: 5, 1: 0})
    same = TableProgress(offsets={0: 7, 1: 3}, topic_id="now")
    accept_topic(same, KAFKA)
    assert same.offsets == {0: 7, 1: 0}


def test_a_stamp_does_not_mix_offsets_of_two_topics() -> None:
    stamp = ChangesStamp(offsets={0: 7, 1: 3}, topic_id="before")
    after = next_stamp(stamp, [], epoch=0, ingested_at=1, topic_id="now")
    assert (after.offsets, after.topic_id) == ({}, "now")
    assert next_stamp(stamp, [], epoch=0, ingested_at=1).topic_id == "before"
    assert ChangesStamp.from_json(after.to_json()) == after


def test_a_stamp_of_an_earlier_version_has_no_topic() -> None:
    stamp = ChangesStamp(offsets={0: 7})
    assert "topic_id" not in json.loads(stamp.to_json())
    assert stamp.offsets_in("now") == {0: 7}


# --- progress ------------------------------------------------------------------------------------


def test_a_stream_that_wakes_up_does_not_overwrite_the_progress() -> None:
    store: Any = MemoryStore()
    Progress(batch=1).save(store)
    asleep, other = Progress.load(store), Progress.load(store)
    other.table("t").stop("why")
    other.save(store)
    with pytest.raises(Fenced, match="another stream has written"):
        asleep.save(store)
    assert not Progress.load(store).table("t").is_streaming


def test_a_stream_that_starts_ends_the_earlier_one() -> None:
    store: Any = MemoryStore()
    earlier = Progress(batch=1)
    earlier.save(store)
    written = earlier.written_at
    Progress.load(store).take_over(store)
    stored = Progress.load(store)
    assert (stored.written_at, stored.batch) == (written, 1)  # the age of the last batch stays
    assert stored.stream != earlier.stream  # S3's ETag is that of the content
    with pytest.raises(Fenced):
        earlier.save(store)


def test_a_write_whose_answer_was_lost_is_ours() -> None:
    class Lossy(MemoryStore):
        def write_if(self, name: str, content: dict[str, Any], etag: str | None) -> str | None:
            super().write_if(name, json.loads(json.dumps(content)), etag)
            return None

    store: Any = Lossy()
    progress = Progress(batch=1, heartbeat_offsets={0: 3})
    progress.save(store)
    assert progress.etag == store.read("progress.json").etag


@pytest.mark.parametrize("has_snapshot", [True, False])
def test_a_table_that_gave_up_records_says_so_until_it_is_read_again(has_snapshot: bool) -> None:
    place = TableProgress()
    place.stop("lost")
    place.ask_to_resume(ResumeRequest(skip_gap=True, has_snapshot=has_snapshot))
    place.flow()
    assert (place.last_error is None) is has_snapshot
    if not has_snapshot:
        assert "cdclake resync" in str(place.last_error)
        place.stop("another reason")
        place.ask_to_resume(ResumeRequest())
        place.flow()
        assert place.incomplete and place.last_error == place.incomplete


# --- checkpoint ----------------------------------------------------------------------------------


class Files:
    """A checkpoint's files by name."""

    def __init__(self, **changed: str | None) -> None:
        offsets = 'v1\n{"batchWatermarkMs":0}\n{"t":{"0":%d}}'
        files: dict[str, str | None] = {
            "metadata": '{"id":"x"}',
            "sources/0/0": '\0v1\n{"t":{"0":1}}',
            "offsets/0": offsets % 5,
            "offsets/1": offsets % 9,
            "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
            **{name.replace("__", "/"): text for name, text in changed.items()},
        }
        self.files = {name: text for name, text in files.items() if text is not None}

    def numbers(self, folder: str) -> list[int]:
        names = [name.split("/") for name in self.files if name.startswith(f"{folder}/")]
        return sorted(int(name[1]) for name in names)

    def read(self, name: str) -> str | None:
        if self.files.get(name) == "checksum":
            raise DamagedCheckpoint("its file fails its checksum")
        return self.files.get(name)


def problem(files: Any, first: int = 5, end: int = 9) -> str | None:
    state = TopicState(id="i", first={0: first}, end={0: end})
    return find_problem(files, FixedTopics(state, "t"))


def test_a_checkpoint_that_kafka_reaches_is_kept() -> None:
    assert problem(Files()) is None
    assert problem(Files(commits__1="v1\n{}"), first=9) is None  # the last batch is committed
    nothing: Any = Files()
    nothing.files = {}
    assert problem(nothing) is None


@pytest.mark.parametrize(
    ("files", "first", "end", "reason"),
    [
        (Files(), 6, 9, "offset 5 of partition 0 of t, and Kafka has 6-9"),
        (Files(), 5, 8, "offset 9 of partition 0 of t, and Kafka has 5-8"),
        (Files(offsets__1=None, commits__0=None), 2, 9, "offset 1 of partition 0"),
        (Files(offsets__1=""), 5, 9, "its file offsets/1 is damaged"),
        (Files(offsets__1="v1\n{"), 5, 9, "its file offsets/1 is damaged"),
        (Files(commits__0=""), 5, 9, "its file commits/0 is damaged"),
        (Files(metadata=""), 5, 9, "its file metadata is damaged"),
        (Files(offsets__1="checksum"), 5, 9, "its file fails its checksum"),
    ],
)
def test_a_checkpoint_that_spark_could_not_start_from_is_found(
    files: Files, first: int, end: int, reason: str
) -> None:
    assert reason in str(problem(files, first, end))


def test_a_checkpoint_of_a_topic_that_is_gone_is_found() -> None:
    files: Any = Files()
    assert find_problem(files, FixedTopics(KAFKA, "other")) == "the topic t no longer exists"
