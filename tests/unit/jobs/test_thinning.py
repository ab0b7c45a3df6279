"""Which table's snapshots a batch thins, and when it cannot."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.errors import CommitConflict
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.stream import inline_expiration, inline_maintenance
from cdclake.jobs.stream.inline_expiration import InlineExpiration
from tests.spark.events import MemoryStore

LAKE: Any = None  # no test here comes to it
PLAN: Any = SimpleNamespace(stream_readers_hours=26)


def tables(**maintenance: str) -> list[Any]:
    """Tables `a` and `b`."""
    return [
        SimpleNamespace(name=t, changes=f"{t}_changes", maintenance=maintenance.get(t, "own"))
        for t in "ab"
    ]


@pytest.fixture
def store():
    return MemoryStore()


@pytest.fixture
def thinned(monkeypatch):
    """The Iceberg tables that were thinned."""
    names: list[str] = []
    monkeypatch.setattr(
        inline_expiration,
        "remove_old_snapshots",
        lambda _lake, name, _now, _readers: names.append(name),
    )
    return names


def test_one_in_a_batch_and_each_once_in_an_hour(store, thinned):
    each = InlineExpiration(Leases(store, "stream"))
    a, b = tables()
    assert each.chosen([a, b]) == "a"
    each.thin(LAKE, PLAN, a)
    assert each.chosen([a, b]) == "b"
    each.thin(LAKE, PLAN, b)
    assert each.chosen([a, b]) is None
    assert (thinned, store.stored) == (["a_changes", "a", "b_changes", "b"], {})


def test_the_one_that_waits_longest_comes_first(store, thinned, monkeypatch):
    """With a trigger of an hour each batch is in another one."""
    each, hours = InlineExpiration(Leases(store, "stream")), iter(range(1, 9))
    monkeypatch.setattr(
        inline_expiration, "hour_of", lambda _: datetime(2026, 1, 1, next(hours), tzinfo=UTC)
    )
    by_name = {table.name: table for table in tables()}
    for _ in range(4):
        each.thin(LAKE, PLAN, by_name[each.chosen(by_name.values()) or ""])
    assert thinned == ["a_changes", "a", "b_changes", "b"] * 2


@pytest.mark.parametrize("maintenance", ["glue", "none"])
def test_what_others_maintain_is_theirs(store, maintenance):
    assert InlineExpiration(Leases(store, "stream")).chosen(tables(a=maintenance)) == "b"


@pytest.mark.parametrize(("held", "before"), [("a_changes", []), ("a", ["a_changes"])])
def test_one_that_another_job_holds_comes_later(store, thinned, held, before):
    later = InlineExpiration(Leases(store, "stream"))
    a, _ = tables()
    with Leases(store, "maintain").hold(held):
        later.thin(LAKE, PLAN, a)
    assert (thinned, later.chosen([a])) == (before, "a")


def test_one_that_others_keep_changing_comes_later_and_stops_nothing(store, monkeypatch, caplog):
    def loses(*_: Any) -> None:
        raise CommitConflict("a", "other writers changed it", "look which")

    monkeypatch.setattr(inline_maintenance, "retry_on_conflict", loses)
    later = InlineExpiration(Leases(store, "stream"))
    a, _ = tables()
    later.thin(LAKE, PLAN, a)
    assert (later.chosen([a]), store.stored) == ("a", {})
    assert "other writers changed it" in caplog.text


def test_a_changelogs_snapshots_are_kept_for_its_readers(store, monkeypatch):
    kept: dict[str, timedelta] = {}

    def remove(_lake: Any, name: str, _now: datetime, readers: timedelta) -> None:
        kept[name] = readers

    monkeypatch.setattr(inline_expiration, "remove_old_snapshots", remove)
    a, _ = tables()
    InlineExpiration(Leases(store, "stream")).thin(LAKE, PLAN, a)
    assert kept == {"a_changes": timedelta(hours=26), "a": timedelta(0)}
