"""Freshness is arithmetic: commit of the first snapshot less commit in the source, by row."""

import pytest

from cdclake.local.demo.freshness import Appended, Freshness, ages, first_visible, freshness
from cdclake.local.demo.transaction_log import Ledger


def test_the_first_snapshot_with_a_stamp_counts() -> None:
    # A compaction may carry the stamp on; it made nothing visible.
    assert first_visible([(10, 5_000), (20, 7_000), (20, 9_000)]) == {10: 5_000, 20: 7_000}


def test_age_is_from_the_source_commit_to_the_snapshot() -> None:
    appended = [Appended(20, 4_000_000, 3), Appended(20, 6_500_000, 1)]
    assert ages(appended, {20: 7_000}) == [(3_000.0, 3), (500.0, 1)]


def test_an_append_without_a_stamp_is_an_error() -> None:
    with pytest.raises(KeyError):
        ages([Appended(30, 0, 1)], {20: 7_000})


def test_each_row_counts_once() -> None:
    assert freshness([(100.0, 1), (200.0, 94), (9_000.0, 5)]) == Freshness(100, 200, 200)
    assert freshness([(100.0, 1), (200.0, 93), (9_000.0, 6)]) == Freshness(100, 200, 9_000)
    assert freshness([(300.4, 1)]) == Freshness(1, 300, 300)


def test_nothing_streamed() -> None:
    assert freshness([]) == Freshness(0, None, None)


def test_the_ledger_knows_the_age_of_what_became_visible() -> None:
    ledger = Ledger()
    for offset, at in ((103, 1.0), (105, 2.0), (110, 3.0)):
        ledger.add(offset, at)
    assert ledger.ages(100, 104, 5.0) == [4.0]
    assert ledger.ages(104, 110, 6.0) == [4.0, 3.0]
    assert ledger.ages(110, 110, 6.0) == []
