"""Leases on tables: one writer of a state table at a time, by conditional PUTs in S3.

Leases keep the cooperating jobs apart (apply, compaction, rebuild). They are not the last line of
defence: Iceberg's validation rejects the commit of a holder that slept past its lease's expiry. It
does not validate a derived table that is replaced as a whole: its job checks the lease again first.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from cdclake.control_objects import LEASES, Lease, lease_name
from cdclake.control_reader import StoredObject
from cdclake.errors import TableError
from cdclake.jobs.control.store import ObjectStore

log = logging.getLogger("cdclake.leases")

LEASE_DURATION_S = 600.0  # how long others wait for a dead holder
RENEWAL_INTERVAL_S = 120.0
_POLL_INTERVAL_S = 0.5
# A run that is alive has renewed its lease since, unless two renewals failed.
_EXPIRY_OF_LIVING_S = LEASE_DURATION_S - 2 * RENEWAL_INTERVAL_S


class Leases:
    """Leases of one job run, identified by a random owner id."""

    def __init__(self, control: ObjectStore, job: str) -> None:
        self._control = control
        self._job = job
        self._owner = f"{job}-{uuid.uuid4().hex}"

    def abandon_earlier_runs(self) -> None:
        """Free the leases of earlier runs of this job; only for a job that never runs twice."""
        for name in list(self._control.names(LEASES)):
            table = name.removesuffix(".json")
            if self._lease_of_job(table) is not None:
                self._control.delete(lease_name(table))

    @contextmanager
    def try_hold(self, table: str) -> Iterator[bool]:
        """Hold the table's lease inside the block if it is free; yield True if so."""
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
            _pause(table, deadline, wait_seconds)
        with self._kept(table):
            yield

    @contextmanager
    def hold_in_turn(self, table: str, *, gives_way: bool) -> Iterator[bool]:
        """Hold the table's lease inside the block, however long other runs of this job hold it.

        If this run gives way, yield False instead of waiting for another run that is alive.
        TableError if another job holds the lease for too long.
        """
        deadline = time.monotonic() + LEASE_DURATION_S
        while not self._acquire(table):
            lease = self._lease_of_job(table)
            if lease is not None:
                if gives_way and lease.expires_at > time.time() + _EXPIRY_OF_LIVING_S:
                    yield False
                    return
                deadline = time.monotonic() + LEASE_DURATION_S
            _pause(table, deadline, LEASE_DURATION_S)
        with self._kept(table):
            yield True

    def check(self, table: str) -> None:
        """Raise TableError if another job has taken over the lease that this run acquired."""
        if self._held(table) is None:
            raise TableError(
                table,
                "another job has taken over its lease, which expired while this one could not run",
                "start the job again if the next run on the schedule is too late",
            )

    def _lease_of_job(self, table: str) -> Lease | None:
        """Return the lease if a run of this job holds it, or did when it died."""
        held = self._control.read(lease_name(table))
        lease = None if held is None else _parse(held)
        return lease if lease is not None and lease.owner.startswith(f"{self._job}-") else None

    def _acquire(self, table: str) -> bool:
        """Acquire the lease if it is free or expired; return True if so."""
        held = self._control.read(lease_name(table))
        if held is not None and _parse(held).expires_at > time.time():
            return False
        lease = self._new_lease()
        if self._write(table, lease, held):
            return True
        # If S3 applied the write and its answer was lost, the retry of botocore is refused. Another
        # thread of this run may hold the lease under the same owner, until another time.
        stored = self._control.read(lease_name(table))
        return stored is not None and _parse(stored) == lease

    @contextmanager
    def _kept(self, table: str) -> Iterator[None]:
        """Renew the lease inside the block, then release it unless another job has taken it."""
        ended = threading.Event()
        renewal = threading.Thread(target=self._renew, args=(table, ended), daemon=True)
        renewal.start()
        try:
            yield
        finally:
            ended.set()
            renewal.join()
            if self._held(table) is not None:
                self._control.delete(lease_name(table))

    def _renew(self, table: str, ended: threading.Event) -> None:
        while not ended.wait(RENEWAL_INTERVAL_S):
            try:
                held = self._held(table)
                if held is None:
                    log.warning("table %s: another job has taken over its lease", table)
                    return
                # A refused write may have been applied, with a lost answer: the next round reads.
                self._write(table, self._new_lease(), held)
            except Exception as error:  # botocore passes on some of its HTTP client's
                log.warning("table %s: its lease was not renewed: %s", table, error)

    def _held(self, table: str) -> StoredObject | None:
        """Return the lease if this run still holds it."""
        held = self._control.read(lease_name(table))
        return held if held is not None and _parse(held).owner == self._owner else None

    def _new_lease(self) -> Lease:
        return Lease(self._owner, time.time() + LEASE_DURATION_S)

    def _write(self, table: str, lease: Lease, over: StoredObject | None) -> bool:
        etag = over.etag if over else None
        return self._control.write_if(lease_name(table), lease.to_json(), etag) is not None


def _pause(table: str, deadline: float, wait_seconds: float) -> None:
    """Sleep until the lease is tried again; TableError after the deadline."""
    if time.monotonic() > deadline:
        raise TableError(
            table,
            f"its lease was not free within {wait_seconds:.0f} s",
            "find the job that still runs on this table, then start this one again",
        )
    time.sleep(_POLL_INTERVAL_S)


def _parse(stored: StoredObject) -> Lease:
    return Lease.from_json(stored.content)
