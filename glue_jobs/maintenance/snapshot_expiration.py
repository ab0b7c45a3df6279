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
    for tag, snapshot in _untagged(lake, table, max(oldest, now - KEEP_HOURLY_FOR), last):
        tags.createTag(tag, snapshot).setMaxRefAgeMs(tag, KEEP_HOURLY_FOR // _MILLISECOND)
    tags.commit()
    expiry = transaction.expireSnapshots().expireOlderThan(_millis(last) + 1)
    expiry.cleanExpiredFiles(False).commit()
    transaction.commitTransaction()


def _untagged(
    lake: LakeTables, table: Any, first: datetime, last: datetime
) -> Iterator[tuple[str, int]]:
    """Yield tag and id of each snapshot that was current when an hour ended, if it has no tag.

    Covers the hours from the one of `first` through `last`. Skips hours without commits and the
    current snapshot.
    """
    java = java_with(lake.spark, "org.apache.iceberg.util.SnapshotUtil")
    tagged, known = table.refs(), {table.currentSnapshot().snapshotId()}
    end = snapshot_tags.hour_of(first - _MILLISECOND) + snapshot_tags.EVERY
    while end <= last:
        snapshot = java.SnapshotUtil.snapshotIdAsOfTime(table, _millis(end))
        tag = snapshot_tags.tag_of(end)
        if snapshot not in known and not tagged.containsKey(tag):
            yield tag, snapshot
        known.add(snapshot)
        end += snapshot_tags.EVERY


def time_of(millis: int) -> datetime:
    """Convert Iceberg's commit time (milliseconds since 1970)."""
    return _EPOCH + millis * _MILLISECOND


def _millis(moment: datetime) -> int:
    return (moment - _EPOCH) // _MILLISECOND
