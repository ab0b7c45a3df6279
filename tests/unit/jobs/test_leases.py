"""One holder of a table at a time; a lease that is worked under does not run out."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError
from urllib3.exceptions import SSLError

from cdclake.control_objects import Lease, lease_name
from cdclake.errors import TableError
from cdclake.jobs.control import leases
from cdclake.jobs.control.leases import Leases
from tests.spark.events import MemoryStore


@pytest.fixture
def store():
    return MemoryStore()


def test_a_held_table_is_nobody_elses(store):
    first, second = Leases(store, "a"), Leases(store, "b")
    with first.hold("t"):
        with second.try_hold("t") as held:
            assert not held
        with second.try_hold("another") as held:
            assert held
        with pytest.raises(TableError, match="its lease was not free"), second.hold("t", 0.0):
            pass
    with second.try_hold("t") as held:
        assert held
    assert store.stored == {}


def test_a_lease_is_renewed_while_it_is_held(store, monkeypatch):
    monkeypatch.setattr(leases, "RENEWAL_INTERVAL_S", 0.01)

    def expiry() -> float:
        return float(store.read(lease_name("t")).content["expires_at"])

    with Leases(store, "a").hold("t"):
        first, deadline = expiry(), time.monotonic() + 30
        while expiry() <= first:
            assert time.monotonic() < deadline
            time.sleep(0.01)


def test_a_dead_holders_lease_is_taken_over_and_not_taken_away_again(store, monkeypatch):
    monkeypatch.setattr(leases, "LEASE_DURATION_S", 0.1)
    sleeper = Leases(store, "a").hold("t")
    sleeper.__enter__()  # with the usual pause between renewals: as good as asleep
    time.sleep(0.2)
    monkeypatch.setattr(leases, "LEASE_DURATION_S", 600.0)
    with Leases(store, "b").hold("t"):
        sleeper.__exit__(None, None, None)
        with Leases(store, "c").try_hold("t") as held:
            assert not held


def test_a_lease_that_another_job_has_taken_over_is_refused(store, monkeypatch):
    monkeypatch.setattr(leases, "LEASE_DURATION_S", 0.1)
    sleeper = Leases(store, "a")
    with sleeper.hold("t"):
        sleeper.check("t")
        time.sleep(0.2)
        with Leases(store, "b").hold("t"), pytest.raises(TableError, match="has taken over"):
            sleeper.check("t")
        with pytest.raises(TableError, match="has taken over"):
            sleeper.check("t")


class FaultyStore(MemoryStore):
    """Store that applies one conditional write, counted from 1, without returning its ETag."""

    def __init__(self, faulty: int, error: Exception | None = None) -> None:
        super().__init__()
        self.faulty, self.error, self.writes = faulty, error, 0
        self.written_later = threading.Event()

    def write_if(self, name: str, content: dict[str, Any], etag: str | None) -> str | None:
        written = super().write_if(name, content, etag)
        self.writes += 1
        if self.writes == self.faulty:
            if self.error is not None:
                raise self.error
            return None  # the answer to botocore's retry, which has the old ETag
        if written is not None and self.writes > self.faulty:
            self.written_later.set()
        return written


@pytest.mark.parametrize(
    "error", [None, EndpointConnectionError(endpoint_url="s3"), SSLError("bad record mac")]
)
def test_a_lease_is_renewed_again_after_a_lost_answer(monkeypatch, error):
    monkeypatch.setattr(leases, "RENEWAL_INTERVAL_S", 0.01)
    store: Any = FaultyStore(2, error)
    with Leases(store, "a").hold("t"):
        assert store.written_later.wait(10.0)
    assert store.stored == {}


def test_a_lease_is_acquired_although_the_answer_was_lost():
    store: Any = FaultyStore(1)
    run = Leases(store, "a")
    with run.try_hold("t") as held:
        assert held
        with run.try_hold("t") as held_twice:
            assert not held_twice
    assert store.stored == {}


class Clock:
    """Time that only passes while a lease is waited for."""

    def __init__(self, after_step: Callable[[float], None]) -> None:
        self.seconds, self.after_step = 0.0, after_step

    def time(self) -> float:
        return self.seconds

    monotonic = time

    def sleep(self, _: float) -> None:
        self.seconds += 60.0
        self.after_step(self.seconds)


def held_by(store: MemoryStore, job: str, until_s: float) -> Clock:
    """A clock during which a run of the job renews its lease on `t` until it releases it."""

    def hold(now: float) -> None:
        if now < until_s:
            store.write(lease_name("t"), Lease(f"{job}-1", now + 600.0).to_json())
        else:
            store.delete(lease_name("t"))

    hold(0.0)
    return Clock(hold)


def test_a_run_waits_for_other_runs_of_its_job(store, monkeypatch):
    clock = held_by(store, "poll_tables", until_s=7200.0)
    monkeypatch.setattr(leases, "time", clock)
    with Leases(store, "poll_tables").hold_in_turn("t", gives_way=False) as is_held:
        assert is_held and clock.seconds == 7200.0


def test_a_run_gives_way_to_another_run_of_its_job(store, monkeypatch):
    clock = held_by(store, "poll_tables", until_s=7200.0)
    monkeypatch.setattr(leases, "time", clock)
    own = Leases(store, "poll_tables")
    with own.hold_in_turn("t", gives_way=True) as is_held:
        assert not is_held and clock.seconds == 0.0
    assert store.read(lease_name("t")).content["owner"] == "poll_tables-1"


@pytest.mark.parametrize(
    "hold",
    [
        lambda own: own.hold("t"),
        lambda own: own.hold_in_turn("t", gives_way=False),
        lambda own: own.hold_in_turn("t", gives_way=True),
    ],
)
def test_a_run_gives_up_behind_another_job(store, monkeypatch, hold):
    clock = held_by(store, "maintain_tables", until_s=7200.0)
    monkeypatch.setattr(leases, "time", clock)
    held = hold(Leases(store, "poll_tables"))
    with pytest.raises(TableError, match="its lease was not free within 600 s"), held:
        pass
    assert clock.seconds == 660.0


def test_a_run_takes_over_the_lease_of_a_dead_run_of_its_job(store, monkeypatch):
    store.write(lease_name("t"), Lease("poll_tables-1", 600.0).to_json())
    clock = Clock(lambda _: None)
    monkeypatch.setattr(leases, "time", clock)
    with Leases(store, "poll_tables").hold_in_turn("t", gives_way=False):
        assert clock.seconds == 600.0


def test_a_run_gives_no_way_to_a_run_that_no_longer_renews(store, monkeypatch):
    """A daily schedule would otherwise lose a day to a poll that was killed before it."""
    store.write(lease_name("t"), Lease("poll_tables-1", 300.0).to_json())
    clock = Clock(lambda _: None)
    monkeypatch.setattr(leases, "time", clock)
    with Leases(store, "poll_tables").hold_in_turn("t", gives_way=True) as is_held:
        assert is_held and clock.seconds == 300.0
