"""Renewal of stamps in tables that other tools maintain (`maintenance: glue` or `none`).

Each compaction adds a snapshot without a stamp, and an expiration counts days or snapshots: of a
table without new events it would remove the snapshot with the newest stamp, and the stream would
stop the table. So the stream commits the same stamp again while the snapshot is young. Our own
maintenance keeps that snapshot instead.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import partial

from cdclake.jobs.control.leases import Leases
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp
from cdclake.jobs.iceberg.data_file import Delta
from cdclake.jobs.iceberg.delta_handle import DeltaHandle
from cdclake.jobs.iceberg.error_policy import hold_reason
from cdclake.jobs.iceberg.lake_tables import LakeTables, StampedSnapshot
from cdclake.jobs.iceberg.table_handle import TableHandle
from cdclake.jobs.maintenance.snapshot_expiration import time_of
from cdclake.jobs.stream.append import commit_files
from cdclake.jobs.stream.inline_maintenance import run_if_free
from cdclake.jobs.stream.table_stream import TableStream

log = logging.getLogger("cdclake.stream")

# A fifth of Glue's default retention, which our optimizers have, too.
CHECK_INTERVAL = RENEW_AFTER = timedelta(days=1)


class StampRenewal:
    """Scheduler of renewals: each table's stamps are checked once in the interval."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases

    def renew_due(self, streams: Iterable[TableStream], *, is_scheduled: bool) -> None:
        """Renew the stamps of a table that is due: one per batch, so that none is delayed.

        A run of a scheduled stream may have one batch only, so it renews those of all tables. A
        failure is logged, and the table is due again after the interval.
        """
        now = datetime.now(UTC)
        due = [stream for stream in streams if _is_due(stream, now)]
        for stream in due if is_scheduled else due[:1]:
            stream.schedule.stamps_checked_at = now
            try:
                self._renew(stream, now)
            except Exception as error:
                name = stream.table.name
                if hold_reason(name, error) is None:
                    raise
                log.warning("table %s: cannot renew its stamps", name, exc_info=error)

    def _renew(self, stream: TableStream, now: datetime) -> None:
        for name, handle, renew in (
            (stream.table.changes, stream.handle, renew_changelog_stamp),
            (stream.table.name, stream.update, renew_stamp),
        ):
            if not _is_young(handle.stamped(), now):  # mostly known, unlike the lease
                run_if_free(self._leases, name, partial(renew, stream.lake, name, now))


def _is_due(stream: TableStream, now: datetime) -> bool:
    checked_at = stream.schedule.stamps_checked_at
    return stream.table.maintenance != "own" and now - checked_at >= CHECK_INTERVAL


def renew_stamp(lake: LakeTables, name: str, now: datetime) -> None:
    """Commit the table's newest stamp again if it is old and other commits have followed it.

    Nothing else is committed. A concurrent append makes it fail, since its stamp is newer.
    """
    stamped = lake.stamped(name)
    if _is_young(stamped, now) or stamped.stamp is None:
        return
    state = DeltaHandle(lake, name)
    if state.stamped().snapshot_id == stamped.snapshot_id:
        state.commit_delta(Delta(), read_from=stamped.snapshot_id, stamp=stamped.stamp)
        log.info("renewed the stamp of %s", name)


def renew_changelog_stamp(lake: LakeTables, name: str, now: datetime) -> None:
    """Do the same for a changelog, as an append: readers that stream it must not meet another."""
    stamped = lake.stamped(name)
    if _is_young(stamped, now) or stamped.stamp is None:
        return
    stamp = ChangesStamp.from_json(stamped.stamp)
    handle = TableHandle(lake, name)
    commit_files(
        [], handle, read_from=stamped.snapshot_id, follows=stamp.ingested_through, stamp=stamp
    )
    log.info("renewed the stamp of %s", name)


def _is_young(stamped: StampedSnapshot, now: datetime) -> bool:
    if stamped.stamped_at_ms is None or stamped.is_current:
        return True
    return now - time_of(stamped.stamped_at_ms) < RENEW_AFTER
