"""Which state a batch packs, and when it cannot."""

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
def packed(monkeypatch):
    """The tables that were packed."""
    names: list[str] = []
    monkeypatch.setattr(inline_compaction, "compact", lambda upkeep: names.append(upkeep.name))
    return names


@pytest.fixture
def packing(store):
    return InlineCompaction(Leases(store, "stream"))


def test_none_is_packed_before_it_has_gathered_enough(packing):
    few = COMPACT_EVERY_N_COMMITS - 1
    assert packing.chosen([]) is None
    assert packing.chosen(streams(a=few, b=few)) is None
    [a, b] = streams(a=few, b=few)
    packing.note(a)
    assert packing.chosen([b, a]) is a


def test_one_is_packed_in_a_batch_the_one_with_most(store, packing, packed):
    a, b = both = streams(a=COMPACT_EVERY_N_COMMITS, b=COMPACT_EVERY_N_COMMITS + 1)
    assert packing.chosen(both) is b
    packing.compact(b)
    assert packing.chosen(both) is a
    packing.compact(a)
    assert packing.chosen(both) is None
    assert (packed, store.stored) == (["b", "a"], {})


@pytest.mark.parametrize("maintenance", ["glue", "none"])
def test_what_others_maintain_is_theirs(packing, maintenance):
    assert packing.chosen(streams(maintenance, a=COMPACT_EVERY_N_COMMITS)) is None


def test_one_that_another_job_holds_comes_later(store, packing, packed):
    [a] = streams(a=COMPACT_EVERY_N_COMMITS)
    with Leases(store, "maintain").hold("a"):
        packing.compact(a)
    assert (packed, packing.chosen([a])) == ([], a)


def test_one_that_others_keep_changing_comes_later_and_stops_nothing(
    store, packing, monkeypatch, caplog
):
    def loses(*_: Any) -> None:
        raise CommitConflict("a", "other writers changed it", "look which")

    monkeypatch.setattr(inline_maintenance, "retry_on_conflict", loses)
    [a] = streams(a=COMPACT_EVERY_N_COMMITS)
    packing.compact(a)
    assert (packing.chosen([a]), store.stored) == (a, {})
    assert "other writers changed it" in caplog.text
