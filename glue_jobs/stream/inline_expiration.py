"""Expiration of snapshots between batches of the stream.

A batch adds a snapshot to a table's changelog and one to its state, and one to the quarantine for
each table that refuses or withholds an event. `maintain_tables` runs once a day by default; until
then there would be thousands.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import partial

from cdclake import naming
from cdclake.iceberg.snapshot_tags import hour_of
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.iceberg.error_policy import hold_reason
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.maintenance.snapshot_expiration import remove_old_snapshots
from cdclake.jobs.stream.inline_maintenance import run_if_free
from cdclake.jobs.stream.table_schedule import NEVER
from cdclake.jobs.stream.table_stream import TableStream

log = logging.getLogger("cdclake.stream")


class InlineExpiration:
    """Scheduler of expirations: each table once an hour, and the quarantine."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._quarantine_expired_in = NEVER

    def chosen(self, streams: Iterable[TableStream]) -> TableStream | None:
        """Choose the longest-waiting table; None if all were handled in this hour.

        One per batch, so that no batch is delayed by all of them. Tables that another tool
        maintains are left out.
        """
        hour = hour_of(datetime.now(UTC))
        due = [
            stream
            for stream in streams
            if stream.table.maintenance == "own" and stream.schedule.expired_in != hour
        ]
        return min(due, key=lambda stream: stream.schedule.expired_in, default=None)

    def expire(self, stream: TableStream) -> None:
        """Expire snapshots of changelog and state; leave busy ones for later.

        Holds the lease of each: another holder may still commit from a snapshot of hours ago.
        """
        now, table = datetime.now(UTC), stream.table
        readers = timedelta(hours=stream.plan.stream_readers_hours)
        kept = {table.changes: readers, table.name: timedelta(0)}
        works = (
            (name, partial(remove_old_snapshots, stream.lake, name, now, needed))
            for name, needed in kept.items()
        )
        if all(run_if_free(self._leases, name, work) for name, work in works):
            stream.schedule.expired_in = hour_of(now)

    def expire_quarantine(self, lake: LakeTables) -> None:
        """Expire snapshots of the quarantine once an hour; leave it for later if it is busy.

        It belongs to no table that could stop: a failure is logged, and the next hour tries again.
        """
        now, name = datetime.now(UTC), naming.QUARANTINE
        if self._quarantine_expired_in == hour_of(now):
            return
        try:
            work = partial(remove_old_snapshots, lake, name, now)
            if not run_if_free(self._leases, name, work):
                return
        except Exception as error:
            if hold_reason(name, error) is None:
                raise
            log.warning("table %s: cannot expire its snapshots", name, exc_info=error)
        self._quarantine_expired_in = hour_of(now)
