"""Which snapshots a table keeps: all of the last hours, and for days before the last of each hour.

A snapshot is about a kilobyte of the table's metadata, which each batch reads several times, and
writes again with each commit: five days of a commit in ten seconds would be 43,000 of them. What is
kept has a tag: Iceberg removes what nothing refers to, and clears the history of before any
snapshot that it removes (`TableMetadata.updateSnapshotLog` of 1.10).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from cdclake.iceberg import snapshot_tags
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.jvm.java import java_with

# Longer than a batch takes: Iceberg refuses a commit that cannot follow the history back to the
# snapshot that it began with. Whatever takes longer holds the table's lease.
KEEP_EVERY_COMMIT_FOR = timedelta(hours=2)
KEEP_HOURLY_FOR = timedelta(days=5)
_MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def remove_old_snapshots(lake: LakeTables, name: str, now: datetime) -> None:
    """Remove snapshots older than `KEEP_EVERY_COMMIT_FOR`, once each hour's last has its tag.

    The newest stamp's snapshot stays, and each later one. No file is removed: one that nothing
    refers to any more is an orphan, and a query that still reads it has days to end. Raises what
    Iceberg does when other commits were quicker several times.
    """
    stamped = lake.stamped(name)
    if stamped.oldest_at_ms is None:
        return
    oldest, last = time_of(stamped.oldest_at_ms), now - KEEP_EVERY_COMMIT_FOR
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
    """What was current when each hour from the one of `first` through `last` ended, by its tag.

    Of an hour without commits nothing, nor of what is current still.
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
    """The time of a commit, as Iceberg says it."""
    return _EPOCH + millis * _MILLISECOND


def _millis(moment: datetime) -> int:
    return (moment - _EPOCH) // _MILLISECOND
