"""Leases: one writer of a table's state at a time, by conditional PUTs in S3.

A lease keeps jobs of good will apart (merge, compaction, rebuild). It is not the guard of last
resort: a holder that slept past its expiry is refused by Iceberg's own validation at its commit.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cdclake.errors import TableError
from glue_jobs.runtime.objects import ObjectStore

LEASE_SECONDS = 600.0
_POLL_SECONDS = 0.5


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

    def try_acquire(self, table: str) -> bool:
        """Take the table's lease now if it is free or expired."""
        name = _object(table)
        held = self._control.read(name)
        if held is not None and held.content["expires_at"] > time.time():
            return False
        content: dict[str, Any] = {
            "owner": self._owner,
            "expires_at": time.time() + LEASE_SECONDS,
        }
        return self._control.write_if(name, content, held.etag if held else None) is not None

    def release(self, table: str) -> None:
        """Give the lease back, unless somebody has taken it over since."""
        held = self._control.read(_object(table))
        if held is not None and held.content["owner"] == self._owner:
            self._control.delete(_object(table))

    @contextmanager
    def hold(self, table: str, wait_seconds: float = LEASE_SECONDS) -> Iterator[None]:
        """Hold the table's lease inside the block; TableError if it isn't free in time."""
        deadline = time.monotonic() + wait_seconds
        while not self.try_acquire(table):
            if time.monotonic() > deadline:
                raise TableError(
                    table,
                    f"its lease was not free within {wait_seconds:.0f} s",
                    "look which job still runs on this table and start this one again",
                )
            time.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            self.release(table)


def _object(table: str) -> str:
    return f"leases/{table}.json"
