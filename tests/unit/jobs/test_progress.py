"""A table's place in the stream: how it stops, flows again, and what it remembers of columns."""

import json
from typing import Any

from cdclake.control_objects import RefusedTotals, ResumeRequest, resume_name
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_life import Stopped
from cdclake.jobs.control.table_progress import NewlyRefused, TableProgress
from cdclake.jobs.control.topic_state import TopicState
from cdclake.jobs.stream.topic_check import accept_topic
from cdclake.stream_requests import request_resume
from tests.spark.events import MemoryStore


def test_a_stopped_table_keeps_its_place_until_it_flows() -> None:
    place = TableProgress(offsets={0: 7}, quarantined=3)
    place.stop("why", ["y"])
    assert (place.is_streaming, place.last_error, place.columns) == (False, "why", ("y",))
    place.ask_to_resume(ResumeRequest(skip_gap=True, has_snapshot=True))
    assert place.skips_gap and place.is_due(0)
    place.stop("why, again")
    assert not place.skips_gap and not place.is_due(1e12)
    place.ask_to_resume(ResumeRequest())
    place.flow()
    assert place == TableProgress(offsets={0: 7})


def test_a_resume_leaves_a_resync_its_skipped_gap() -> None:
    control: Any = MemoryStore()
    request_resume(control, "t", skip_gap=True)
    request_resume(control, "t")
    request_resume(control, "t", columns_changed=True)
    taken = ResumeRequest.from_json(control.read(resume_name("t")).content)
    assert taken == ResumeRequest(skip_gap=True)
    place = TableProgress()
    place.stop("why")
    place.ask_to_resume(taken)
    place.ask_to_resume(ResumeRequest())
    assert place.skips_gap


def test_changed_columns_resume_a_table_that_they_may_have_stopped() -> None:
    """A widened column stops its table by the number of its refused values alone."""
    by_columns = TableProgress(life=Stopped(reason="y", columns=("y",)))
    by_refusals, by_error = TableProgress(quarantined=101), TableProgress()
    assert by_refusals.stop_if_refusing(100)
    by_error.stop("why")
    stored = json.loads(json.dumps(by_refusals.to_stored()))
    earlier = {name: value for name, value in stored.items() if name != "refused"}
    refusing = (TableProgress.parse(stored), TableProgress.parse(earlier))
    places = (by_columns, *refusing, by_error, TableProgress())
    for place in places:
        place.ask_to_resume(ResumeRequest(columns_changed=True))
    assert [place.is_due(0) for place in places] == [True, True, True, False, False]
    by_error.ask_to_resume(ResumeRequest())
    assert by_error.is_due(0)


def test_a_table_that_flows_goes_on_counting() -> None:
    place = TableProgress(quarantined=3)
    place.flow()
    assert place.quarantined == 3


def test_the_totals_of_refused_events_outlive_counts_and_tables() -> None:
    progress = Progress()
    progress.note_quarantined("t", NewlyRefused(2, 1, {0: 9}))
    progress.table("t").quarantined = 0  # replayed
    progress.note_quarantined("t", NewlyRefused(1, 0, {0: 10}))
    progress.note_quarantined("u", NewlyRefused(1, 1, {0: 3}))
    del progress.tables["u"]
    assert progress.refused == RefusedTotals(quarantined=4, withheld=2)
    stored = json.loads(json.dumps(progress.to_stored()))
    assert Progress.parse(stored) == progress
    del stored["refused"]  # of an earlier version
    assert Progress.parse(stored).refused == RefusedTotals()


def test_a_request_to_resume_restarts_the_count_once() -> None:
    """A process may be killed between the request and the end of the batch that counts again."""
    place = TableProgress(quarantined=3)
    place.stop("why")
    for count in (0, 2):
        place.ask_to_resume(ResumeRequest())
        assert place.quarantined == count
        place.quarantined = 2


def test_counted_events_are_forgotten_once_the_offsets_pass_them() -> None:
    place = TableProgress(offsets={0: 4})
    place.note_quarantined(NewlyRefused(2, 1, {0: 9, 1: 5}))
    place.note_quarantined(NewlyRefused(0, 0, {0: 7}))
    stored = json.loads(json.dumps(Progress(tables={"t": place}).to_stored()))
    assert Progress.parse(stored).table("t") == place
    assert (place.quarantined, place.withheld, place.counted) == (2, 1, {0: 9, 1: 5})
    place.advance({0: 9, 1: 3})
    assert (place.offsets, place.counted) == ({0: 9, 1: 3}, {1: 5})


def test_another_topic_has_no_counted_events() -> None:
    for topic, counted in (("a", {0: 9}), ("b", {})):
        place = TableProgress(counted={0: 9}, topic_id="a")
        accept_topic(place, TopicState(id=topic, first={0: 2}, end={0: 30}))
        assert place.counted == counted


def test_what_an_earlier_version_wrote_is_read() -> None:
    raw = Progress(tables={"t": TableProgress(offsets={0: 7})}).to_stored()
    raw["heartbeat_offsets"] = {}
    raw["tables"]["t"] = {"offsets": {"0": 7}, "state": "streaming", "quarantined": 0}
    assert Progress.parse(raw).tables["t"] == TableProgress(offsets={0: 7})


def test_the_stored_object_keeps_its_keys() -> None:
    table = TableProgress(offsets={0: 7}, first_seen={"y text": "1"})
    progress = Progress(heartbeat_committed_us=5, tables={"t": table})
    stored = json.loads(json.dumps(progress.to_stored()))
    assert (stored["beat_us"], stored["tables"]["t"]["seen"]) == (5, {"y text": "1"})
    assert not {"heartbeat_committed_us", "first_seen"} & {*stored, *stored["tables"]["t"]}
    assert Progress.parse(stored) == progress


def test_what_a_later_version_has_added_is_let_go() -> None:
    written = Progress(batch=3, tables={"t": TableProgress(offsets={0: 7})})
    raw = {**written.to_stored(), "new": 1}
    raw["tables"] = {"t": {**raw["tables"]["t"], "new": 1}}
    assert Progress.parse(raw) == written


def test_a_table_stops_at_one_refused_event_too_many() -> None:
    progress = TableProgress()
    assert not progress.note_refused(7, 10)
    assert not progress.note_refused(3, 10)
    assert (progress.is_streaming, progress.quarantined, progress.last_error) == (True, 10, None)
    assert progress.note_refused(1, 10)
    assert (progress.is_streaming, progress.quarantined) == (False, 11)
    assert "11 events refused, more than stop_table_after=10" in str(progress.last_error)
