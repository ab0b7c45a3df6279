"""Leases: one writer of a table's state at a time, by conditional PUTs in S3.

A lease keeps jobs of good will apart (merge, compaction, rebuild). It is not the guard of last
resort: a holder that slept past its expiry is refused by Iceberg's own validation at its commit.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from cdclake.errors import TableError
from cdclake.jobs.control.store import ObjectStore, StoredObject

log = logging.getLogger("cdclake.leases")

LEASE_DURATION_S = 600.0  # how long a dead holder keeps the others waiting
RENEWAL_INTERVAL_S = 120.0
_POLL_INTERVAL_S = 0.5


class Leases:
    """The leases of one job run, told apart by a random owner id."""

    def __init__(self, control: ObjectStore, job: str) -> None:
        self._control = control
        self._job = job
        self._owner = f"{job}-{uuid.uuid4().hex}"

    def abandon_earlier_runs(self) -> None:
        """Free what earlier runs of this job hold; for a job that never runs twice at once."""
        for name in list(self._control.names("leases")):
            held = self._control.read(f"leases/{name}")
            if held is not None and held.content["owner"].startswith(f"{self._job}-"):
                self._control.delete(f"leases/{name}")

    @contextmanager
    def try_hold(self, table: str) -> Iterator[bool]:
        """Hold the table's lease inside the block if it is free now; whether it was."""
        if not self._acquire(table):
            yield False
            return
        with self._kept(table):
            yield True

    @contextmanager
    def hold(self, table: str, wait_seconds: float = LEASE_DURATION_S) -> Iterator[None]:
        """Hold the table's lease inside the block; TableError if it isn't free in time."""
        deadline = time.monotonic() + wait_seconds
        while not self._acquire(table):
            if time.monotonic() > deadline:
                raise TableError(
                    table,
                    f"its lease was not free within {wait_seconds:.0f} s",
                    "look which job still runs on this table and start this one again",
                )
            time.sleep(_POLL_INTERVAL_S)
        with self._kept(table):
            yield

    def _acquire(self, table: str) -> bool:
        """Take the lease if it is free or expired."""
        held = self._control.read(_object(table))
        if held is not None and held.content["expires_at"] > time.time():
            return False
        return self._write(table, held)

    @contextmanager
    def _kept(self, table: str) -> Iterator[None]:
        """Renewed as long as the block lasts, then given back unless somebody took it over."""
        ended = threading.Event()
        renewal = threading.Thread(target=self._renew, args=(table, ended), daemon=True)
        renewal.start()
        try:
            yield
        finally:
            ended.set()
            renewal.join()
            if self._held(table) is not None:
                self._control.delete(_object(table))

    def _renew(self, table: str, ended: threading.Event) -> None:
        while not ended.wait(RENEWAL_INTERVAL_S):
            held = self._held(table)
            if held is None or not self._write(table, held):
                log.warning("table %s: another job has taken its lease over", table)
                return

    def _held(self, table: str) -> StoredObject | None:
        """The lease, if it is still ours."""
        held = self._control.read(_object(table))
        return held if held is not None and held.content["owner"] == self._owner else None

    def _write(self, table: str, over: StoredObject | None) -> bool:
        content = {"owner": self._owner, "expires_at": time.time() + LEASE_DURATION_S}
        etag = over.etag if over else None
        return self._control.write_if(_object(table), content, etag) is not None


def _object(table: str) -> str:
    return f"leases/{table}.json"
