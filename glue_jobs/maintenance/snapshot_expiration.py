"""Expiration of snapshots: keep all of the last hours, and the last of each hour for some days.

A snapshot adds about a kilobyte to the table's metadata, which each batch reads several times and
each commit writes again: five days with a commit every ten seconds would be 43,000 snapshots. Kept
snapshots have a tag: Iceberg removes unreferenced ones, and clears the history before any snapshot
that it removes (`TableMetadata.updateSnapshotLog` in 1.10).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from cdclake.iceberg import snapshot_tags
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.jvm.java import java_with

# Longer than a batch takes: Iceberg refuses a commit if the history no longer reaches back to the
# snapshot where the commit started. Longer work holds the table's lease.
KEEP_EVERY_COMMIT_FOR = timedelta(hours=2)
KEEP_HOURLY_FOR = timedelta(days=5)
_MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def remove_old_snapshots(
    lake: LakeTables, name: str, now: datetime, readers: timedelta = timedelta(0)
) -> None:
    """Tag the last snapshot of each hour; expire the others older than `KEEP_EVERY_COMMIT_FOR`.

    They are kept for `readers` if that is longer: for those that stream the table's snapshots.

    The snapshot with the newest stamp stays, and so do all later ones. No file is removed: files
    that become unreferenced are orphans, and a query that still reads them has days to finish.
    Raises Iceberg's exception if concurrent commits won several times.
    """
    stamped = lake.stamped(name)
    if stamped.oldest_at_ms is None:
        return
    oldest, last = time_of(stamped.oldest_at_ms), now - max(KEEP_EVERY_COMMIT_FOR, readers)
    if stamped.stamped_at_ms is not None:
        last = min(last, time_of(stamped.stamped_at_ms) - _MILLISECOND)
    last = snapshot_tags.hour_of(last)
    if oldest > last:
        return
    table = lake.load(name)
    transaction = table.newTransaction()
    tags = transaction.manageSnapshots()
    first = max(oldest, now - KEEP_HOURLY_FOR)
    for snapshot, moment, until in _hourly(lake, table, first, last, now):
        committed = time_of(table.snapshot(snapshot).timestampMillis())
        tag = snapshot_tags.tag_of(moment)
        if not table.refs().containsKey(tag):
            # Iceberg counts the age from the snapshot's commit: of a quiet table that is long ago.
            age = until + KEEP_HOURLY_FOR - committed
            tags.createTag(tag, snapshot).setMaxRefAgeMs(tag, age // _MILLISECOND)
    tags.commit()
    expiry = transaction.expireSnapshots().expireOlderThan(_millis(last) + 1)
    expiry.cleanExpiredFiles(False).commit()
    transaction.commitTransaction()


def _hourly(
    lake: LakeTables, table: Any, first: datetime, last: datetime, now: datetime
) -> Iterator[tuple[int, datetime, datetime]]:
    """Yield the id of each snapshot that was current when an hour ended, but for the current one.

    With each the first hour end that it was current at, and a time when it no longer was: the end
    of such an hour, or `now`. Covers the hours from the one of `first` through `last`. A table that
    was rolled back yields a snapshot again, with the first hour end after that.
    """
    java = java_with(lake.spark, "org.apache.iceberg.util.SnapshotUtil")
    current = table.currentSnapshot().snapshotId()
    seen: set[int] = set()
    held: tuple[int, datetime] | None = None
    end = _hour_end(first)
    while end <= last:
        snapshot = java.SnapshotUtil.snapshotIdAsOfTime(table, _millis(end))
        if held is None or snapshot != held[0]:
            if held is not None:
                yield *held, end
            # Before `first` a quiet table was current for hours that have no tag yet.
            earliest = _hour_end(time_of(table.snapshot(snapshot).timestampMillis()))
            at_earliest = java.SnapshotUtil.nullableSnapshotIdAsOfTime(table, _millis(earliest))
            is_rolled_back = snapshot in seen or snapshot != at_earliest
            held = (snapshot, end if is_rolled_back else earliest)
            seen.add(snapshot)
        end += snapshot_tags.EVERY
    if held is not None and held[0] != current:
        yield *held, now


def _hour_end(moment: datetime) -> datetime:
    return snapshot_tags.hour_of(moment - _MILLISECOND) + snapshot_tags.EVERY


def time_of(millis: int) -> datetime:
    """Convert Iceberg's commit time (milliseconds since 1970)."""
    return _EPOCH + millis * _MILLISECOND


def _millis(moment: datetime) -> int:
    return (moment - _EPOCH) // _MILLISECOND
