"""Planted faults in logs and states are found: each by the words that it gets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdclake.debezium.position import Position
from tests.model_lake import report
from tests.model_lake.audit import Change, Values, by_key
from tests.model_lake.compare import compare_earlier, compare_logs, compare_states
from tests.model_lake.log import NOTHING, Event, StateRow, events_by_key, rows_by_key
from tests.model_lake.report import LakeDiffers, fail_on, verified
from tests.model_lake.shapes import VALUES
from tests.model_lake.waves import SIZE, places, waves

A: Values = ("1", None, "large a", "doc", "raw")
B: Values = ("2", "note", "large a", "doc", "raw")
C: Values = ("3", None, "large c", "doc", "raw")
PLACE = ("accounts", "17001")


def event(op: str, lsn: int, values: Values = NOTHING, *missing: str, partition: int = 0) -> Event:
    at = Position(1, lsn - 1, 0 if op == "r" else 1, lsn, lsn)
    sent = tuple(
        None if name in missing else value for name, value in zip(VALUES, values, strict=True)
    )
    return Event(op, str(at), partition, sent, frozenset(missing), lsn)


CHANGES = [Change("c", None, A), Change("u", A, B), Change("d", B, None), Change("c", None, C)]
LOG = [
    event("c", 10, A),
    event("r", 15, A),
    event("u", 20, B, "body", "doc"),
    event("d", 30),
    event("c", 40, C),
]


def wrong(log: list[Event], place: tuple[str, str] = PLACE, **snapshotted: Any) -> str:
    """What is said of the only key."""
    found = compare_logs({place: CHANGES}, {place: log}, **snapshotted)
    return found.get(place, "")


def test_a_log_that_tells_the_truth_is_right() -> None:
    assert wrong(LOG) == ""
    rest = [event("r", 15, B), *LOG[3:]]
    assert wrong(rest, snapshotted=frozenset({PLACE})) == ""
    dead = [*LOG[4:]]
    assert wrong(dead, snapshotted=frozenset({PLACE})) == ""


def test_a_row_that_was_truncated_before_the_snapshot_read_it_may_be_missing() -> None:
    changes = [Change("c", None, A), Change("t", None, None), Change("c", None, C)]
    for log, is_right in (
        ([event("t", 30), event("c", 40, C)], True),
        ([LOG[4]], True),
        ([], False),
    ):
        read = frozenset({PLACE})
        assert (compare_logs({PLACE: changes}, {PLACE: log}, read) == {}) == is_right


def test_of_a_new_key_only_truncates_may_be_older_than_the_log() -> None:
    changes = [Change("t", None, None), Change("c", None, A), Change("u", A, B)]
    log = [event("c", 10, A), event("u", 20, B, "body", "doc")]
    assert compare_logs({PLACE: changes}, {PLACE: log}) == {}
    assert "1 events of 3 changes" in compare_logs({PLACE: changes}, {PLACE: log[1:]})[PLACE]


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (LOG[:-1], "3 events of 4 changes"),
        ([*LOG, event("u", 50, C)], "5 events of 4 changes"),
        ([*LOG[:3], replace(LOG[2], position=str(Position(1, 25, 1, 20, 99))), LOG[4]], "twice"),
        ([LOG[0], LOG[3], LOG[2], LOG[4]], "the source did u"),
        ([*LOG[:2], event("u", 20, B, "body", "v"), *LOG[3:]], "without v"),
        ([*LOG[:2], event("u", 20, A), *LOG[3:]], "v was 1 and became 2"),
        ([*LOG[:4], event("c", 40, C, "body")], "without body"),
        ([*LOG[:3], event("d", 30, B), LOG[4]], "expected"),
        ([LOG[0], event("r", 15, B), *LOG[2:]], "by then"),
        ([*LOG[:3], event("r", 25, A), *LOG[3:]], "by then"),
        ([*LOG[:4], event("r", 35, C), LOG[4]], "by then"),
        ([*LOG, event("d", 41, partition=-1)], "5 events"),
        ([*LOG[:3], event("d", 30, partition=-1), LOG[4]], "of its own"),
    ],
)
def test_a_fault_in_a_log_is_found(log: list[Event], said: str) -> None:
    assert said in wrong(log)


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (LOG[3:], "no snapshot read its row"),
        ([event("r", 15, A), *LOG[3:]], "by then"),
        ([event("r", 15, B), *LOG], ""),  # a row that was not there yet when all changes follow
    ],
)
def test_a_fault_in_a_snapshot_is_found(log: list[Event], said: str) -> None:
    found = wrong(log, snapshotted=frozenset({PLACE}))
    assert found
    assert said in found


def test_a_whole_row_is_expected_where_it_is_declared() -> None:
    place = ("ledgers", "17001")
    whole = [LOG[0], event("u", 20, B), event("d", 30, B), LOG[4]]
    assert wrong(whole, place) == ""
    assert "expected" in wrong([*whole[:2], event("d", 30), LOG[4]], place)
    assert "without body" in wrong([LOG[0], event("u", 20, B, "body"), *whole[2:]], place)


def row(values: Values, *, deleted: bool = False, missing: tuple[str, ...] = ()) -> StateRow:
    return StateRow("u", "1", deleted, values, missing)


@pytest.mark.parametrize(
    ("table", "last", "rows", "said"),
    [
        ("accounts", Change("u", A, B), [row(B)], None),
        ("accounts", Change("d", B, None), [row(NOTHING, deleted=True)], None),
        ("accounts", Change("d", B, None), [], None),
        ("members", Change("d", B, None), [row(B, deleted=True)], None),
        ("emptied", Change("t", None, None), [], None),
        ("accounts", Change("u", A, B), [], "no row"),
        ("accounts", Change("u", A, B), [row(A)], "expected"),
        ("accounts", Change("u", A, B), [row(B), row(B)], "2 rows"),
        ("accounts", Change("u", A, B), [row(B, deleted=True)], "expected"),
        ("accounts", Change("u", A, B), [row(B, missing=("body",))], "lacks body"),
        ("accounts", Change("d", B, None), [row(B)], "expected"),
        ("accounts", Change("d", B, None), [row(B, deleted=True)], "expected"),
        ("members", Change("d", B, None), [], "no row"),
        ("members", Change("d", B, None), [row(NOTHING, deleted=True)], "expected"),
    ],
)
def test_a_fault_in_a_state_is_found(
    table: str, last: Change, rows: list[StateRow], said: str | None
) -> None:
    place = (table, "17001")
    found = compare_states({place: [Change("c", None, A), last]}, {place: LOG}, {place: rows})
    assert (place in found) == (said is not None)
    assert said is None or said in found[place]


@pytest.mark.parametrize(
    ("committed_at", "row"), [(5, None), (10, A), (25, B), (30, None), (39, None), (40, C)]
)
def test_a_fault_in_rows_of_an_earlier_time_is_found(committed_at: int, row: Values | None) -> None:
    for shown in (None, A, B, C):
        rows = [] if shown is None else [[*PLACE, *shown]]
        found = compare_earlier({PLACE: CHANGES}, {PLACE: LOG}, rows, committed_at)
        assert (found == {}) == (shown == row)
    snapshotted = {PLACE: [event("r", 15, B), *LOG[3:]]}
    assert compare_earlier({PLACE: CHANGES}, snapshotted, [[*PLACE, *B]], 20) == {}


def test_a_row_that_was_deleted_before_the_first_snapshot_is_not_kept() -> None:
    place = ("members", "17001")
    truth = {place: [Change("c", None, A), Change("d", A, None)]}
    assert compare_states(truth, {}, {}) == {}
    assert compare_states(truth, {place: [event("t", 30)]}, {}) == {}
    assert "no row" in compare_states(truth, {place: [event("d", 30)]}, {})[place]


def test_the_audit_is_read_as_events_of_keys() -> None:
    listed = [
        ("emptied", "INSERT", None, "1", None, list(A)),
        ("emptied", "TRUNCATE", None, None, None, None),
        ("emptied", "INSERT", None, "2", None, list(A)),
        ("emptied", "UPDATE", "2", "3", list(A), list(B)),
    ]
    truncate = Change("t", None, None)
    assert by_key(listed) == {
        ("emptied", "1"): [Change("c", None, A), truncate],
        ("emptied", "2"): [truncate, Change("c", None, A), Change("d", A, None)],
        ("emptied", "3"): [truncate, Change("c", A, B)],
    }


def test_answers_of_the_lake_are_read_by_key() -> None:
    inserted, emptied = event("c", 10, A), event("t", 20)
    answer = [
        ["emptied", "1", "c", inserted.position, 0, *A, None, 10],
        ["emptied", None, "t", emptied.position, 0, *NOTHING, None, 20],
    ]
    assert events_by_key(answer) == {("emptied", "1"): [inserted, emptied]}
    state = [["accounts", "1", "u", "1", False, *B, ["body"]]]
    assert rows_by_key(state) == {("accounts", "1"): [row(B, missing=("body",))]}


def test_a_difference_says_how_to_see_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "FOLDER", tmp_path)
    owners = places(one for wave in waves(17, 1) for one in wave.histories)
    place = next(iter(owners))
    fail_on({}, owners, {}, {})
    with pytest.raises(LakeDiffers, match="make test-model SEEDS=1 SEED=17"):
        fail_on({place: "wrong"}, owners, {place: CHANGES}, {place: LOG})
    assert "INSERT INTO" in (tmp_path / "seed-17.sql").read_text()
    assert str(CHANGES[0]) in (tmp_path / "seed-17.txt").read_text()


def test_what_verify_finds_is_a_difference() -> None:
    table: dict[str, Any] = {"table": "entries", "error": None, "first": []}
    assert verified({"ok": True, "tables": [table]}) == {}
    key = {"owner": "17", "label": "key 1"}
    example: dict[str, Any] = {
        "key": key,
        "kind": "missing",
        "columns": [],
        "source": {},
        "lake": None,
    }
    found = verified({"ok": False, "tables": [{**table, "first": [example]}]})
    assert list(found) == [("entries", "17/key 1")]
    for failed in (
        {"ok": False, "error": {"code": "component_failed"}},
        {"ok": False, "tables": [{**table, "error": "stopped"}]},
        {"ok": False, "tables": [table]},
    ):
        with pytest.raises(LakeDiffers):
            verified(failed)


def test_a_seed_has_the_same_wave_wherever_the_counting_begins() -> None:
    [alone], [first, second] = waves(17, 1), waves(0, 2 * SIZE)
    assert alone.number == first.number
    assert alone.histories == (first.histories[17],)
    assert [len(wave.histories) for wave in (first, second)] == [SIZE, SIZE]
    assert "TRUNCATE" in first.histories[0].script() + second.histories[0].script()
    assert len(places(first.histories)) == sum(8 * len(h.shapes) for h in first.histories)
