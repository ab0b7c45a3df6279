"""One holder of a table at a time; a lease that is worked under does not run out."""

import threading
import time
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

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


def test_a_lease_is_renewed_as_long_as_it_is_held(store, monkeypatch):
    monkeypatch.setattr(leases, "LEASE_DURATION_S", 0.3)
    monkeypatch.setattr(leases, "RENEWAL_INTERVAL_S", 0.05)
    with Leases(store, "a").hold("t"):
        time.sleep(0.6)
        with Leases(store, "b").try_hold("t") as held:
            assert not held


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


@pytest.mark.parametrize("error", [None, EndpointConnectionError(endpoint_url="s3")])
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
