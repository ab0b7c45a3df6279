"""Time since which a poll reads rows: after the last poll, or all of them."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.control_objects import PollProgress
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp
from cdclake.jobs.poll import table_poll
from cdclake.jobs.poll.table_poll import TablePoll
from cdclake.jobs.stream.append import POLL_PARTITION
from cdclake.polling import Polling
from tests.spark.events import MemoryStore
from tests.unit.verify.lakes import make_plan, make_table

CITY = make_table(
    name="city", delivery="poll", polling=Polling(by="v", every="rate(1 day)", deletes="none")
)
LAST = PollProgress(read_at=10, bound=8, epoch=1, lsn=95, source_lsn=90, ingested=5)


@pytest.fixture
def poll(monkeypatch: pytest.MonkeyPatch) -> TablePoll:
    monkeypatch.setattr(table_poll, "ingested_through", lambda *_: 5)
    lake: Any = SimpleNamespace()
    store: Any = MemoryStore()
    return TablePoll(lake, make_plan(CITY), store, CITY)


@pytest.mark.parametrize(
    ("epoch", "lsn", "is_whole", "since"),
    [
        (1, 91, False, 8),
        (2, 91, False, None),
        (1, 89, False, None),
        (1, 0, False, 8),
        (1, 91, True, None),
    ],
    ids=["goes on", "new epoch", "WAL went back", "a replica", "asked for"],
)
def test_rows_are_read_since_the_last_poll_of_the_same_history(
    poll: TablePoll, epoch: int, lsn: int, is_whole: bool, since: int | None
) -> None:
    before = replace(LAST, definition=poll._definition)
    snapshot: Any = SimpleNamespace(read_at=20, lsn=89, primary_lsn=lsn, bound=18)
    found = replace(poll, is_whole=is_whole)._since(before, snapshot, epoch)
    assert found == since


def test_the_position_of_the_source_is_remembered_as_it_is(poll: TablePoll) -> None:
    """The position of its rows is above the last poll's, and would hide that it went back."""
    snapshot: Any = SimpleNamespace(read_at=20, lsn=70, primary_lsn=70, bound=18)
    reached = poll._progress(LAST, snapshot, None, ChangesStamp(), epoch=1)
    assert (reached.lsn, reached.source_lsn) == (96, 70)


def test_a_replica_leaves_no_position_to_compare(poll: TablePoll) -> None:
    """Replicas behind one address have different positions, and no WAL went back."""
    snapshot: Any = SimpleNamespace(read_at=20, lsn=70, primary_lsn=0, bound=18)
    reached = poll._progress(LAST, snapshot, None, ChangesStamp(), epoch=1)
    assert (reached.lsn, reached.source_lsn) == (96, 0)


@pytest.mark.parametrize(
    ("epoch", "marks"), [(1, {0: 500, POLL_PARTITION: 7}), (2, {POLL_PARTITION: 7})]
)
def test_marks_of_an_earlier_epoch_end_with_the_first_poll(
    epoch: int, marks: dict[int, int]
) -> None:
    place: Any = SimpleNamespace(epoch=epoch, lsn=7)
    assert table_poll._marks(ChangesStamp(epoch=1, lsn_marks={0: 500}), place) == marks
