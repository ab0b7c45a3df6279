"""Judgement of reads: a source's states, in the time that a lake may be late."""

from __future__ import annotations

from tests.trino.source_history import KeyHistory, WatchedTable


def watched() -> WatchedTable:
    """A table with one key of three versions, committed at the times 10, 20 and 30."""
    table = WatchedTable("t", 0, is_toasted=False)
    history = KeyHistory()
    for version in (1, 2, 3):
        history.add(100 + version, (version, "x"))
        history.committed.append(10.0 * version)
    table.keys = {7: history}
    return table


def test_a_state_between_changelog_and_source_is_no_fault() -> None:
    table = watched()
    for version in (2, 3):
        assert table.faults({7: 102}, [(7, version, "x")], newer_than=15) == []


def test_what_the_changelog_had_already_may_not_be_missing() -> None:
    assert watched().faults({7: 102}, [(7, 1, "x")], newer_than=0) != []
    assert watched().faults({7: 101}, [], newer_than=0) != []


def test_a_state_that_was_replaced_longer_ago_is_a_fault() -> None:
    assert watched().faults({7: 101}, [(7, 1, "x")], newer_than=19) == []
    assert watched().faults({7: 101}, [(7, 1, "x")], newer_than=20) != []
    assert watched().faults({}, [], newer_than=9) == []
    assert watched().faults({}, [], newer_than=10) != []


def test_a_key_twice_is_a_fault() -> None:
    assert watched().faults({7: 103}, [(7, 3, "x"), (7, 3, "x")], newer_than=0) != []
