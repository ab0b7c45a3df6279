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
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.maintenance.snapshot_expiration import remove_old_snapshots
from cdclake.jobs.stream.inline_maintenance import run_if_free
from cdclake.plan import Plan, Table

_NEVER = datetime.min.replace(tzinfo=UTC)


class InlineExpiration:
    """Record of when (which hour) this process last expired each table's snapshots."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._thinned: dict[str, datetime] = {}

    def chosen(self, tables: Iterable[Table]) -> str | None:
        """Choose the longest-waiting table; None if all were handled in this hour.

        One per batch, so that no batch is delayed by all of them. Tables that another tool
        maintains are left out.
        """
        hour = hour_of(datetime.now(UTC))
        hours = {
            t.name: self._thinned.get(t.name, _NEVER) for t in tables if t.maintenance == "own"
        }
        due = {name: thinned for name, thinned in hours.items() if thinned != hour}
        return min(due, key=due.__getitem__, default=None)

    def thin(self, lake: LakeTables, plan: Plan, table: Table) -> None:
        """Expire snapshots of changelog and state; leave busy ones for later.

        Holds the lease of each: another holder may still commit from a snapshot of hours ago.
        """
        now = datetime.now(UTC)
        kept = {table.changes: timedelta(hours=plan.stream_readers_hours), table.name: timedelta(0)}
        works = (
            (name, partial(remove_old_snapshots, lake, name, now, readers))
            for name, readers in kept.items()
        )
        if all(run_if_free(self._leases, name, work) for name, work in works):
            self._thinned[table.name] = hour_of(now)
