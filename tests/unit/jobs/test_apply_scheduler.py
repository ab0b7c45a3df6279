"""Choice of the states that a batch updates, under every load."""

from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.jobs.stream.apply_scheduler import SHARE, ApplyScheduler
from cdclake.jobs.stream.table_schedule import TableSchedule

TABLES = ("a", "b", "c")
ALL = frozenset(TABLES)
TRIGGER_S, FRESHNESS_S = 10, 180
ROOM_S = SHARE * TRIGGER_S  # for states while events arrive


class Clock:
    """A clock that is set."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


class Turns:
    """A scheduler, and streams of the tables."""

    def __init__(self, clock: Clock) -> None:
        self.scheduler = ApplyScheduler(clock)
        self.streams: dict[str, Any] = {
            name: SimpleNamespace(
                table=SimpleNamespace(
                    name=name,
                    delivery="stream",
                    apply="each_batch",
                    state_freshness=FRESHNESS_S,
                ),
                schedule=TableSchedule(),
            )
            for name in TABLES
        }

    def wait(self, *tables: str) -> None:
        self.scheduler.wait(self.streams[table] for table in tables)

    def settle(self, table: str) -> None:
        self.scheduler.settle(self.streams[table])

    def note_batch(self, **figures: Any) -> None:
        self.scheduler.note_batch(**figures)

    def chosen(
        self, arriving: frozenset[str], flowing: frozenset[str] = ALL, mode: str = "always_on"
    ) -> frozenset[str]:
        plan: Any = SimpleNamespace(mode=mode, trigger_seconds=TRIGGER_S)
        streams = [stream for name, stream in self.streams.items() if name in flowing]
        return self.scheduler.chosen(plan, streams, arriving)


@pytest.fixture
def turns(clock):
    return Turns(clock)


def test_states_that_cost_little_are_all_brought_up(turns):
    turns.note_batch(busy=True, seconds=TRIGGER_S / 2, states=3, merging=ROOM_S)
    assert turns.chosen(ALL) == {*TABLES}


def test_states_that_cost_more_wait_for_their_freshness_though_the_stream_keeps_up(turns, clock):
    """An update costs the same for few changes as for many: one a minute is cheaper than six."""
    turns.note_batch(busy=True, seconds=TRIGGER_S / 2, states=3, merging=4 * ROOM_S)
    turns.wait(*TABLES)
    taken = []
    for clock.now in range(0, FRESHNESS_S + TRIGGER_S + 1, TRIGGER_S):
        for table in turns.chosen(ALL):
            taken.append(table)
            turns.settle(table)
            turns.wait(table)
    assert sorted(taken) == [*TABLES]
    assert turns.chosen(frozenset()) == {*TABLES}  # no events: the stream has time


def test_a_stream_whose_logs_take_the_trigger_leaves_the_states_for_later(turns):
    turns.wait(*TABLES)
    turns.note_batch(busy=True, seconds=TRIGGER_S + 1, states=0, merging=0)
    assert turns.chosen(ALL) == set()
    assert turns.chosen(frozenset()) == {*TABLES}  # nothing else to do
    # It would end without them.
    assert turns.chosen(ALL, mode="scheduled") == {*TABLES}


def test_a_batch_without_events_brings_states_up_for_no_longer_than_the_trigger(turns):
    """Else events that come meanwhile would wait for the states of all tables."""
    turns.wait(*TABLES)
    turns.note_batch(busy=True, seconds=TRIGGER_S + 5, states=2, merging=10)  # 5 s each
    chosen = turns.chosen(frozenset())
    assert len(chosen) == 2
    for table in chosen:
        turns.settle(table)
    assert turns.chosen(frozenset()) == {*TABLES}  # only one lacks something
    turns.wait(*TABLES)
    turns.note_batch(busy=False, seconds=TRIGGER_S * 2, states=1, merging=TRIGGER_S * 2)
    assert len(turns.chosen(frozenset())) == 1


def test_a_state_that_needs_several_updates_gets_them_from_a_stream_that_keeps_up(turns, clock):
    """An update has at most so many events; with one a freshness the state would fall behind."""
    ingested, applied, per_batch, per_update = 0, 0, 200_000, 400_000
    lags = []
    for clock.now in range(0, 20 * FRESHNESS_S, TRIGGER_S):
        ingested += per_batch
        took = 0.0
        if "a" in turns.chosen(frozenset("a")):
            applied = min(ingested, applied + per_update)
            took = 4.0
        if applied == ingested:
            turns.settle("a")
        else:
            turns.wait("a")
        turns.note_batch(busy=True, seconds=2 + took, states=int(took > 0), merging=took)
        lags.append((ingested - applied) / per_batch * TRIGGER_S)
    assert max(lags) <= 2 * FRESHNESS_S
    assert lags.count(0) >= 5


def test_overdue_states_take_what_the_changelogs_leave_of_the_interval(turns, clock):
    turns.wait(*TABLES)
    turns.note_batch(busy=True, seconds=6 + 4, states=1, merging=4)
    clock.now = FRESHNESS_S * 5
    assert turns.chosen(ALL) == {*TABLES}  # owed
    turns.note_batch(busy=True, seconds=2 + 9, states=3, merging=9)
    clock.now += TRIGGER_S
    assert len(turns.chosen(ALL)) == 2  # 3 s each
    turns.note_batch(busy=True, seconds=TRIGGER_S + 9, states=3, merging=9)
    clock.now += TRIGGER_S
    assert not turns.chosen(ALL)  # a late stream gets no later


def test_as_many_states_as_fit_the_longest_waiting_first(turns, clock):
    for table in ("b", "c"):
        turns.wait(table)
        clock.now += 1
    turns.note_batch(busy=True, seconds=TRIGGER_S / 2, states=4, merging=2 * ROOM_S)
    assert turns.chosen(ALL) == {"b", "c"}


def test_a_few_states_that_fit_are_no_sign_that_all_do(turns):
    turns.note_batch(busy=True, seconds=TRIGGER_S / 2, states=1, merging=ROOM_S * 0.6)
    assert len(turns.chosen(ALL)) == 1


def test_only_tables_that_lack_something_have_to_fit(turns):
    turns.note_batch(busy=True, seconds=TRIGGER_S / 2, states=1, merging=ROOM_S * 0.6)
    assert turns.chosen(frozenset({"a"})) == {*TABLES}


def test_states_that_another_job_brings_up_take_no_room(turns):
    turns.note_batch(busy=True, seconds=TRIGGER_S / 2, states=1, merging=ROOM_S * 0.6)
    turns.streams["a"].table.apply = turns.streams["b"].table.apply = "scheduled"
    assert turns.chosen(ALL) == {*TABLES}
    turns.note_batch(busy=True, seconds=TRIGGER_S + 1, states=0, merging=0)
    assert turns.chosen(ALL) == {"a", "b"}


def test_what_a_state_takes_is_known_from_batches_without_events_too(turns):
    turns.note_batch(busy=False, seconds=ROOM_S * 3, states=3, merging=ROOM_S * 3)
    assert len(turns.chosen(ALL)) == 1


def test_a_late_stream_takes_its_states_evenly_those_that_waited_longest_first(turns, clock):
    """None is due at once with the others, though all were brought up at once before."""
    turns.note_batch(busy=True, seconds=TRIGGER_S + 5, states=0, merging=0)
    for table in ("b", "a", "c"):
        turns.wait(table)
        clock.now += 1
    taken = []
    for clock.now in range(int(FRESHNESS_S * 2) + 1):
        for table in turns.chosen(ALL):
            taken.append((clock.now, table))
            turns.settle(table)
            turns.wait(table)
    times, tables = zip(*taken, strict=True)
    assert tables == ("b", "a", "c", "b", "a", "c")
    assert times == tuple(range(60, 361, 60))


def test_so_many_at_once_that_each_has_its_turn_in_time(turns, clock):
    turns.note_batch(busy=True, seconds=FRESHNESS_S * 2 / 3, states=0, merging=0)
    turns.wait(*TABLES)
    clock.now = FRESHNESS_S * 2 / 3
    assert len(turns.chosen(ALL)) == 2


def test_a_stream_that_kept_up_owes_no_turns(turns, clock):
    turns.wait(*TABLES)
    clock.now = FRESHNESS_S
    assert turns.chosen(ALL) == {*TABLES}
    turns.note_batch(busy=True, seconds=TRIGGER_S + 5, states=0, merging=0)
    assert turns.chosen(ALL) == set()


def test_no_turns_are_owed_for_a_time_in_which_no_state_waited(turns, clock):
    """Else the first batch after a silence would bring all states up, late as it is."""
    turns.note_batch(busy=True, seconds=TRIGGER_S + 5, states=0, merging=0)
    clock.now = FRESHNESS_S * 20
    assert turns.chosen(ALL) == set()


def test_a_stopped_table_does_not_take_the_others_turns(turns, clock):
    turns.note_batch(busy=True, seconds=TRIGGER_S + 5, states=0, merging=0)
    turns.wait("a")
    clock.now = 1
    turns.wait("b")
    clock.now = FRESHNESS_S + 5
    assert turns.chosen(ALL, flowing=ALL - {"a"}) == {"b"}


def test_scheduler_knows_since_when_only_of_states_that_batches_update(turns, clock):
    """The stream settles the others without an update: they are the job's that applies them."""
    turns.streams["b"].table.apply = "scheduled"
    turns.streams["c"].table.delivery = "firehose"
    clock.now = 7.0
    turns.wait("a", "b")
    turns.settle("b")
    assert [turns.scheduler.behind_since(turns.streams[name]) for name in TABLES] == [
        7.0,
        None,
        None,
    ]
    turns.settle("a")
    assert turns.scheduler.behind_since(turns.streams["a"]) == 0


def test_the_state_whose_freshness_ends_first_is_the_next(turns, clock):
    turns.note_batch(busy=True, seconds=TRIGGER_S + 5, states=0, merging=0)
    turns.streams["c"].table.state_freshness = 20
    turns.wait("a")
    clock.now = 5
    turns.wait("b", "c")
    taken = []
    for clock.now in range(5, 61):
        for table in turns.chosen(ALL):
            taken.append(table)
            turns.settle(table)
            turns.wait(table)
    assert taken[0] == "c" and taken.count("c") > taken.count("a") + taken.count("b")
