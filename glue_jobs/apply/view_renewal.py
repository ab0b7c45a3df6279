"""Renewal of the literal bound in Athena's stored `<t>_current`, by who commits the state.

The literal lets every engine skip the changelog's files before it. The view fails if the stamp that
it looks up is older than the literal, so a literal never hides an event. To keep queries from
failing, the renewed literal is the stamp of a commit that each of them already finds old enough,
less what the view itself subtracts from its stamp: it may be from before other settings.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from cdclake import naming
from cdclake.iceberg.athena_views import STAMP_AGE_S
from cdclake.jobs.iceberg.catalog_view import CatalogViews
from cdclake.jobs.iceberg.commit_metadata import state_stamp
from cdclake.jobs.iceberg.error_policy import Kind, cause_of
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.plan import Plan, Table

log = logging.getLogger("cdclake.views")

RENEW_EVERY = timedelta(minutes=10)
# Athena bills at least 10 MB for a query, so a shorter tail costs nothing.
MIN_GROWTH_BYTES = 10_000_000
# Twice what queries ask for: their clock may be behind ours.
SETTLED_AFTER = timedelta(seconds=2 * STAMP_AGE_S)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ADDED_BYTES = "added-files-size"  # Iceberg's summary of a snapshot


@dataclass(frozen=True, slots=True)
class ViewRenewal:
    """Renewal of the bounds in stored views."""

    views: CatalogViews
    min_growth: int = MIN_GROWTH_BYTES

    def renew(self, lake: LakeTables, plan: Plan, table: Table, now: datetime) -> int | None:
        """Renew the bound of the table's view if that is due; return the new one, or None.

        It is due ten minutes after the view's last change, if the changelog has grown enough since
        the bound, or if the state was set back to before it. Any error is only logged, unless the
        JVM failed: the old bound is right, and no table waits for its view.
        """

        def choose(bound: int, lateness: int, changed_at: datetime) -> int | None:
            if now - changed_at < RENEW_EVERY:
                return None
            stamp = settled_stamp(lake.load(table.name), now)
            if stamp is None or stamp - lateness == bound:
                return None
            settled = stamp - lateness
            has_grown = settled < bound or self._has_grown(lake.load(table.changes), bound)
            return settled if has_grown else None

        try:
            name = naming.current_name(table.name)
            return self.views.replace_bound(plan.lake_database, name, choose)
        except Exception as error:
            if cause_of(error, Kind.JVM_FAILED) is not None:
                raise
            log.warning("table %s: cannot renew its view", table.name, exc_info=error)
            return None

    def _has_grown(self, changelog: Any, since: int) -> bool:
        """Check whether commits since this time (microseconds) have added enough bytes.

        They may have if some of them have expired, which are no longer counted.
        """
        added, snapshot = 0, changelog.currentSnapshot()
        while snapshot is not None and snapshot.timestampMillis() * 1000 > since:
            if snapshot.operation() != "replace":  # a compaction adds no rows
                added += int(snapshot.summary().get(_ADDED_BYTES) or 0)
            if added >= self.min_growth:
                return True
            parent = snapshot.parentId()
            if parent is None:
                return False
            snapshot = changelog.snapshot(parent)
            if snapshot is None:
                return True
        return False


def has_stored_bound(plan: Plan) -> bool:
    """Check whether stored views may have a bound: printed ones, as for Trino alone, have none."""
    return "athena" in plan.readers


def renew_view(lake: LakeTables, plan: Plan, table: Table) -> None:
    """Renew the bound of the table's view if that is due, for a job that runs once."""
    if has_stored_bound(plan):
        ViewRenewal(CatalogViews()).renew(lake, plan, table, datetime.now(UTC))


def settled_stamp(state: Any, now: datetime) -> int | None:
    """Return the time in the newest stamp that is old enough, in microseconds; None without one.

    Only ancestors of the current snapshot count, as in the view.
    """
    latest_ms = (now - SETTLED_AFTER - _EPOCH) // timedelta(milliseconds=1)
    snapshot = state.currentSnapshot()
    while snapshot is not None:
        stamp = snapshot.summary().get(naming.STAMP_PROPERTY)
        if stamp is not None and snapshot.timestampMillis() <= latest_ms:
            return state_stamp(stamp).ingested
        parent = snapshot.parentId()
        snapshot = None if parent is None else state.snapshot(parent)
    return None
