"""Whose state a batch brings up, when the stream keeps up and when it is late."""

from types import SimpleNamespace
from typing import Any

import pytest

from glue_jobs.ingest.turns import LONGEST_WAIT_S, ApplyTurns

TABLES = ("a", "b", "c")
FLOWING = frozenset(TABLES)
TRIGGER_S = 10


class Clock:
    """A clock that is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def turns(clock):
    return ApplyTurns(clock)


def plan(mode: str = "always_on") -> Any:
    tables = [SimpleNamespace(name=name) for name in TABLES]
    return SimpleNamespace(mode=mode, trigger_seconds=TRIGGER_S, tables=tables)


def test_a_stream_that_keeps_up_brings_all_states_up(turns):
    turns.note_batch(busy=True, merged=True, seconds=TRIGGER_S)
    assert turns.chosen(plan(), FLOWING, busy=True) == {*TABLES}


@pytest.mark.parametrize(
    "last", [{"busy": True, "merged": False}, {"busy": False, "merged": True}], ids=str
)
def test_a_late_stream_leaves_the_states_for_later(turns, last):
    turns.wait(TABLES)
    turns.note_batch(**last, seconds=TRIGGER_S + 1)
    assert turns.chosen(plan(), FLOWING, busy=True) == set()
    assert turns.chosen(plan(), FLOWING, busy=False) == {*TABLES}  # nothing else to do
    assert turns.chosen(plan("scheduled"), FLOWING, busy=True) == {
        *TABLES
    }  # or it would end without them


def test_a_late_stream_takes_those_that_waited_longest_one_after_the_other(turns, clock):
    turns.note_batch(busy=True, merged=False, seconds=TRIGGER_S + 5)
    for table in ("b", "a", "c"):
        turns.wait([table])
        clock.now += 1
    clock.now = LONGEST_WAIT_S - 1
    assert turns.chosen(plan(), FLOWING, busy=True) == set()
    clock.now = LONGEST_WAIT_S + 5
    assert turns.chosen(plan(), FLOWING, busy=True) == {"b"}
    turns.settle("b")
    turns.wait(["b"])
    assert turns.chosen(plan(), FLOWING, busy=True) == {"a"}


def test_so_many_at_once_that_each_has_its_turn_in_time(turns, clock):
    turns.note_batch(busy=True, merged=False, seconds=LONGEST_WAIT_S * 2 / 3)
    turns.wait(TABLES)
    clock.now = LONGEST_WAIT_S
    assert len(turns.chosen(plan(), FLOWING, busy=True)) == 2


def test_a_stopped_table_does_not_take_the_others_turns(turns, clock):
    turns.note_batch(busy=True, merged=False, seconds=TRIGGER_S + 5)
    turns.wait(["a"])
    clock.now = 1
    turns.wait(["b"])
    clock.now = LONGEST_WAIT_S + 5
    assert turns.chosen(plan(), FLOWING - {"a"}, busy=True) == {"b"}
