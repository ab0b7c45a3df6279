"""Expiration of snapshots by the stream: choice of the table, conflicts."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake import naming
from cdclake.errors import CommitConflict, ServiceUnavailable
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.stream import inline_expiration, inline_maintenance
from cdclake.jobs.stream.inline_expiration import InlineExpiration
from cdclake.jobs.stream.table_schedule import TableSchedule
from cdclake.jobs.stream.table_stream import TableStream
from tests.spark.events import MemoryStore

PLAN: Any = SimpleNamespace(stream_readers_hours=26)


def streams(**maintenance: str) -> list[Any]:
    """Streams of tables `a` and `b`."""
    return [
        SimpleNamespace(
            table=SimpleNamespace(
                name=name, changes=f"{name}_changes", maintenance=maintenance.get(name, "own")
            ),
            schedule=TableSchedule(), plan=PLAN, lake=None,
        )
        for name in "ab"
    ]  # fmt: skip


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
        lambda _lake, name, *_: names.append(name),
    )
    return names


def test_one_in_a_batch_and_each_once_in_an_hour(store, thinned):
    each = InlineExpiration(Leases(store, "stream"))
    both: list[TableStream] = streams()
    for due in both:
        assert each.chosen(both) is due
        each.expire(due)
    assert each.chosen(both) is None
    assert (thinned, store.stored) == (["a_changes", "a", "b_changes", "b"], {})


def test_the_one_that_waits_longest_comes_first(store, thinned, monkeypatch):
    """With a trigger of an hour each batch is in another one."""
    each, hours = InlineExpiration(Leases(store, "stream")), iter(range(1, 9))
    monkeypatch.setattr(
        inline_expiration, "hour_of", lambda _: datetime(2026, 1, 1, next(hours), tzinfo=UTC)
    )
    both: list[TableStream] = streams()
    for _ in range(4):
        chosen = each.chosen(both)
        assert chosen is not None
        each.expire(chosen)
    assert thinned == ["a_changes", "a", "b_changes", "b"] * 2


@pytest.mark.parametrize("maintenance", ["glue", "none"])
def test_what_others_maintain_is_theirs(store, maintenance):
    a, b = streams(a=maintenance)
    assert InlineExpiration(Leases(store, "stream")).chosen([a, b]) is b


@pytest.mark.parametrize(("held", "before"), [("a_changes", []), ("a", ["a_changes"])])
def test_one_that_another_job_holds_comes_later(store, thinned, held, before):
    later = InlineExpiration(Leases(store, "stream"))
    a, _ = streams()
    with Leases(store, "maintain").hold(held):
        later.expire(a)
    assert (thinned, later.chosen([a])) == (before, a)


def test_one_that_others_keep_changing_comes_later_and_stops_nothing(store, monkeypatch, caplog):
    def loses(*_: Any) -> None:
        raise CommitConflict("a", "other writers changed it", "look which")

    monkeypatch.setattr(inline_maintenance, "retry_on_conflict", loses)
    later = InlineExpiration(Leases(store, "stream"))
    a, _ = streams()
    later.expire(a)
    assert (later.chosen([a]), store.stored) == (a, {})
    assert "other writers changed it" in caplog.text


def test_a_changelogs_snapshots_are_kept_for_its_readers(store, monkeypatch):
    kept: dict[str, timedelta] = {}

    def remove(_lake: Any, name: str, _now: datetime, readers: timedelta) -> None:
        kept[name] = readers

    monkeypatch.setattr(inline_expiration, "remove_old_snapshots", remove)
    a, _ = streams()
    InlineExpiration(Leases(store, "stream")).expire(a)
    assert kept == {"a_changes": timedelta(hours=26), "a": timedelta(0)}


LAKE: Any = None


@pytest.fixture
def at(monkeypatch) -> Callable[[int], None]:
    """Set the hour."""

    def set_to(hour: int) -> None:
        moment = datetime(2026, 1, 1, hour, tzinfo=UTC)
        monkeypatch.setattr(inline_expiration, "hour_of", lambda _: moment)

    return set_to


def test_the_quarantine_is_thinned_once_in_an_hour(store, thinned, at):
    each = InlineExpiration(Leases(store, "stream"))
    for hour in (1, 1, 2):
        at(hour)
        each.expire_quarantine(LAKE)
    assert (thinned, store.stored) == ([naming.QUARANTINE] * 2, {})


def test_a_quarantine_that_another_job_holds_comes_later(store, thinned, at):
    at(1)
    later = InlineExpiration(Leases(store, "stream"))
    with Leases(store, "maintain").hold(naming.QUARANTINE):
        later.expire_quarantine(LAKE)
    assert thinned == []
    later.expire_quarantine(LAKE)
    assert thinned == [naming.QUARANTINE]


def test_a_quarantine_that_cannot_be_thinned_waits_for_the_next_hour(
    store, at, monkeypatch, caplog
):
    tries: list[str] = []

    def fails(_lake: Any, name: str, *_: Any) -> None:
        tries.append(name)
        raise ServiceUnavailable("S3 does not answer")

    monkeypatch.setattr(inline_expiration, "remove_old_snapshots", fails)
    each = InlineExpiration(Leases(store, "stream"))
    for hour in (1, 1, 2):
        at(hour)
        each.expire_quarantine(LAKE)
    assert (tries, store.stored) == ([naming.QUARANTINE] * 2, {})
    assert "cannot expire its snapshots" in caplog.text
    monkeypatch.setattr(inline_expiration, "remove_old_snapshots", lambda *_: 1 / 0)
    at(3)
    with pytest.raises(ZeroDivisionError):
        each.expire_quarantine(LAKE)
