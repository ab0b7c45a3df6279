"""Compaction of states by the stream: choice of the state, conflicts."""

from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.errors import CommitConflict
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.stream import inline_compaction, inline_maintenance
from cdclake.jobs.stream.inline_compaction import COMPACT_EVERY_N_COMMITS, InlineCompaction
from cdclake.jobs.stream.table_schedule import TableSchedule
from tests.spark.events import MemoryStore


def streams(maintenance: str = "own", **commits: int) -> list[Any]:
    """Streams of tables after so many commits to each state; `maintenance` is that of `a`."""
    return [
        SimpleNamespace(
            table=SimpleNamespace(name=name, maintenance=maintenance if name == "a" else "own"),
            schedule=TableSchedule(state_commits=count), lake=None,
        )
        for name, count in commits.items()
    ]  # fmt: skip


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def compacted(monkeypatch):
    """The tables that were compacted."""
    names: list[str] = []
    monkeypatch.setattr(inline_compaction, "compact", lambda upkeep: names.append(upkeep.name))
    return names


@pytest.fixture
def compaction(store):
    return InlineCompaction(Leases(store, "stream"))


def test_none_is_compacted_before_it_has_gathered_enough(compaction):
    few = COMPACT_EVERY_N_COMMITS - 1
    assert compaction.chosen([]) is None
    assert compaction.chosen(streams(a=few, b=few)) is None
    [a, b] = streams(a=few, b=few)
    compaction.note(a)
    assert compaction.chosen([b, a]) is a


def test_one_is_compacted_in_a_batch_the_one_with_most(store, compaction, compacted):
    a, b = both = streams(a=COMPACT_EVERY_N_COMMITS, b=COMPACT_EVERY_N_COMMITS + 1)
    assert compaction.chosen(both) is b
    compaction.compact(b)
    assert compaction.chosen(both) is a
    compaction.compact(a)
    assert compaction.chosen(both) is None
    assert (compacted, store.stored) == (["b", "a"], {})


@pytest.mark.parametrize("maintenance", ["glue", "none"])
def test_what_others_maintain_is_theirs(compaction, maintenance):
    assert compaction.chosen(streams(maintenance, a=COMPACT_EVERY_N_COMMITS)) is None


def test_one_that_another_job_holds_comes_later(store, compaction, compacted):
    [a] = streams(a=COMPACT_EVERY_N_COMMITS)
    with Leases(store, "maintain").hold("a"):
        compaction.compact(a)
    assert (compacted, compaction.chosen([a])) == ([], a)


def test_one_that_others_keep_changing_comes_later_and_stops_nothing(
    store, compaction, monkeypatch, caplog
):
    def loses(*_: Any) -> None:
        raise CommitConflict("a", "other writers changed it", "look which")

    monkeypatch.setattr(inline_maintenance, "retry_on_conflict", loses)
    [a] = streams(a=COMPACT_EVERY_N_COMMITS)
    compaction.compact(a)
    assert (compaction.chosen([a]), store.stored) == (a, {})
    assert "other writers changed it" in caplog.text
