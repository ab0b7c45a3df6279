"""Thinning snapshots while they stream: a batch makes one of a table's log, and one of its state.

`maintain_tables` comes once a day by default: until then there would be thousands.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial

from cdclake.iceberg.snapshot_tags import hour_of
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.maintenance.snapshot_expiration import remove_old_snapshots
from cdclake.jobs.stream.inline_maintenance import run_if_free
from cdclake.plan import Table

_NEVER = datetime.min.replace(tzinfo=UTC)


class InlineExpiration:
    """Remembers of each table in which hour this process has thinned its snapshots."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._thinned: dict[str, datetime] = {}

    def chosen(self, tables: Iterable[Table]) -> str | None:
        """Of these tables the one that waits longest; None if all were thinned in this hour.

        One at a time, so that no batch ends late for all of them. What others maintain is theirs.
        """
        hour = hour_of(datetime.now(UTC))
        hours = {
            t.name: self._thinned.get(t.name, _NEVER) for t in tables if t.maintenance == "own"
        }
        due = {name: thinned for name, thinned in hours.items() if thinned != hour}
        return min(due, key=due.__getitem__, default=None)

    def thin(self, lake: LakeTables, table: Table) -> None:
        """Thin the log's and the state's; of one that another job holds, or changes, later.

        Under a lease of each, since who holds it may commit by what it began with hours ago.
        """
        now = datetime.now(UTC)
        names = (table.changes, table.name)
        works = ((name, partial(remove_old_snapshots, lake, name, now)) for name in names)
        if all(run_if_free(self._leases, name, work) for name, work in works):
            self._thinned[table.name] = hour_of(now)
