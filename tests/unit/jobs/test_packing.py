"""Which state a batch packs, and when it cannot."""

from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.errors import CommitConflict
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.stream import inline_compaction, inline_maintenance
from cdclake.jobs.stream.inline_compaction import COMPACT_EVERY_N_COMMITS, InlineCompaction
from tests.spark.events import MemoryStore

LAKE: Any = None  # no test here comes to it


def plan(**maintenance: str) -> Any:
    """Of tables `a` and `b`."""
    tables = [SimpleNamespace(name=t, maintenance=maintenance.get(t, "own")) for t in "ab"]
    return SimpleNamespace(history_days=90, tables=tables)


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def packed(monkeypatch):
    """The tables that were packed."""
    names: list[str] = []
    monkeypatch.setattr(inline_compaction, "compact", lambda upkeep: names.append(upkeep.name))
    return names


def gathered(store, **commits: int) -> InlineCompaction:
    """After so many commits to each state."""
    made = InlineCompaction(Leases(store, "stream"))
    for table, count in commits.items():
        for _ in range(count):
            made.note(table)
    return made


def test_none_is_packed_before_it_has_gathered_enough(store):
    assert gathered(store).chosen(plan()) is None
    assert (
        gathered(store, a=COMPACT_EVERY_N_COMMITS - 1, b=COMPACT_EVERY_N_COMMITS - 1).chosen(plan())
        is None
    )
    assert (
        gathered(store, a=COMPACT_EVERY_N_COMMITS, b=COMPACT_EVERY_N_COMMITS - 1).chosen(plan())
        == "a"
    )


def test_one_is_packed_in_a_batch_the_one_with_most(store, packed):
    both = gathered(store, a=COMPACT_EVERY_N_COMMITS, b=COMPACT_EVERY_N_COMMITS + 1)
    a, b = plan().tables
    assert both.chosen(plan()) == "b"
    both.compact(LAKE, plan(), b)
    assert both.chosen(plan()) == "a"
    both.compact(LAKE, plan(), a)
    assert both.chosen(plan()) is None
    assert (packed, store.stored) == (["b", "a"], {})


@pytest.mark.parametrize("maintenance", ["glue", "none"])
def test_what_others_maintain_is_theirs(store, maintenance):
    assert gathered(store, a=COMPACT_EVERY_N_COMMITS).chosen(plan(a=maintenance)) is None


def test_one_that_another_job_holds_comes_later(store, packed):
    later = gathered(store, a=COMPACT_EVERY_N_COMMITS)
    with Leases(store, "maintain").hold("a"):
        later.compact(LAKE, plan(), plan().tables[0])
    assert (packed, later.chosen(plan())) == ([], "a")


def test_one_that_others_keep_changing_comes_later_and_stops_nothing(store, monkeypatch, caplog):
    def loses(*_: Any) -> None:
        raise CommitConflict("a", "other writers changed it", "look which")

    monkeypatch.setattr(inline_maintenance, "retry_on_conflict", loses)
    later = gathered(store, a=COMPACT_EVERY_N_COMMITS)
    later.compact(LAKE, plan(), plan().tables[0])
    assert (later.chosen(plan()), store.stored) == ("a", {})
    assert "other writers changed it" in caplog.text
