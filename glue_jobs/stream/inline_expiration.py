"""Expiration of snapshots between batches of the stream.

A batch adds a snapshot to a table's changelog and one to its state. `maintain_tables` runs once a
day by default; until then there would be thousands.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import partial

from cdclake.iceberg.snapshot_tags import hour_of
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.maintenance.snapshot_expiration import remove_old_snapshots
from cdclake.jobs.stream.inline_maintenance import run_if_free
from cdclake.jobs.stream.table_stream import TableStream


class InlineExpiration:
    """Scheduler of expirations: each table once an hour."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases

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

    def thin(self, stream: TableStream) -> None:
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
