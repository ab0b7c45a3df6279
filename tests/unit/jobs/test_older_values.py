"""Rows that changed while a resync read them, and whose events lacked large values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cdclake.control_objects import ResyncRequest, ScanEnd
from cdclake.debezium.position import epoch_start
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.operations import executor
from cdclake.jobs.operations.executor import _note_missed, _resync
from tests.unit.postgres.tables import declared


class Stream:
    table = declared()


STREAM: Any = Stream()


def request(position: str) -> ResyncRequest:
    return ResyncRequest(id="i", position=position, notified=0)


@pytest.mark.parametrize(
    ("place", "counted_from"),
    [
        (TableProgress(), "p2"),
        (TableProgress(incomplete="events were lost"), "p2"),
        (TableProgress(missed_below="p1"), "p1"),
        (TableProgress(missed_below="p1", incomplete="events were lost"), "p2"),
        (TableProgress(missed_below="p1", first_seen={"note text": "p05"}), "p1"),
        (TableProgress(missed_below="p1", first_seen={"note text": "p15"}), "p2"),
    ],
)
def test_every_resync_counts_older_values(
    monkeypatch: pytest.MonkeyPatch, place: TableProgress, counted_from: str
) -> None:
    """Values that an earlier resync has read are current, unless events or a column are newer."""
    asked: list[str] = []

    def count(_: Any, position: str) -> int:
        asked.append(position)
        return 3

    monkeypatch.setattr(executor, "count_older_values", count)
    assert _note_missed(request("p2"), place, STREAM) == 3
    assert (asked, place.missed_below, place.incomplete) == ([counted_from], counted_from, None)
    assert "3 rows changed while they were read" in str(place.last_error)


def test_resync_without_older_values_ends_the_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    place = TableProgress(missed_below="p1", warning="older values")
    monkeypatch.setattr(executor, "count_older_values", lambda *_: 0)
    assert _note_missed(request("p2"), place, STREAM) == 0
    assert (place.missed_below, place.last_error) == (None, None)


@pytest.mark.parametrize("rejoins", [True, False])
def test_failed_read_of_new_columns_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, rejoins: bool
) -> None:
    """`up` does not wait for its outcome; other resyncs return the error to their command."""
    progress = Progress(epoch=1)
    place = progress.table(STREAM.table.name)
    ended = ScanEnd(status="SUCCEEDED", rows=10, offsets={})
    monkeypatch.setattr(STREAM, "lake", None, raising=False)
    monkeypatch.setattr(STREAM, "plan", None, raising=False)
    monkeypatch.setattr(executor, "unread_markers", lambda *_: [])
    monkeypatch.setattr(executor, "count_read_rows", lambda *_: 9)  # a row is in quarantine
    asked = ResyncRequest(
        id="i", position=str(epoch_start(1)), notified=0, rejoins=rejoins, ended=ended
    )
    answer = _resync(asked, progress, STREAM)
    assert answer is not None and "only 9 of them" in answer["error"]
    assert place.last_error == (answer["error"] if rejoins else None)
    aborted = replace(asked, ended=replace(ended, status="ABORTED"))
    answer = _resync(aborted, progress, STREAM)
    assert answer is not None and answer["error"].endswith("ABORTED")
    assert place.last_error == (answer["error"] if rejoins else None)
