"""End of an epoch's snapshot: from then on it replaces the rows of the epochs before.

The snapshot brings every row that the source has, and not what was deleted while there was no slot.
Until it is complete, readers keep the rows of before (decision 35). The connector streams only
after its snapshot, so a heartbeat that it streamed proves that the snapshot was sent. Producers
send topics side by side: what was sent may reach Kafka some seconds after that heartbeat. A later
heartbeat therefore has to follow; what the topics hold then is the snapshot.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from cdclake.debezium.position import epoch_start, snapshot_start
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.stream.changelog_job import DecodedBatch, Ranges
from cdclake.jobs.stream.heartbeats import SentHeartbeat
from cdclake.jobs.stream.table_stream import Replaced
from cdclake.jobs.stream.topic_check import Topics
from cdclake.plan import Plan, Table

log = logging.getLogger("cdclake.stream")

SETTLE_MS = 5_000  # between two streamed heartbeats, for what was sent before the first one


class EpochSnapshot:
    """Tracking of the newest epoch's snapshot in the stream's progress."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics

    def note(self, plan: Plan, seen: DecodedBatch, progress: Progress) -> None:
        """Note a new epoch, and the end of its snapshot with the topics' ends at that time."""
        if seen.epoch > progress.epoch:
            log.info("epoch %d begins: its snapshot replaces all rows", seen.epoch)
        progress.epoch = max(progress.epoch, seen.epoch)
        is_complete = progress.complete_snapshot >= str(epoch_start(progress.epoch))
        if plan.heartbeat_rows_topic not in seen.ranges:
            return
        if is_complete and not seen.has_read_heartbeat:
            return
        if follow_heartbeats(progress, seen.heartbeats):
            self._complete(plan, progress)

    def _complete(self, plan: Plan, progress: Progress) -> None:
        """Take what the topics hold now as the snapshot."""
        states = self._topics.states([table.topic for table in plan.tables])
        for table in plan.tables:
            ends = states[table.topic].end if table.topic in states else {}
            progress.table(table.name).snapshot_ends = dict(ends)
        progress.note_snapshot(states, time.time())
        log.info("the snapshot of epoch %d is complete", progress.epoch)


def follow_heartbeats(progress: Progress, heartbeats: Iterable[SentHeartbeat]) -> bool:
    """Follow heartbeats in Kafka's order; return True once the newest snapshot is complete.

    A connector that restarts during its snapshot takes another one in the same epoch. Its rows,
    those of the heartbeats among them, are at a greater LSN.
    """
    is_complete = False
    for heartbeat in heartbeats:
        if heartbeat.epoch < progress.epoch:
            continue
        lsn = heartbeat.lsn if heartbeat.is_read else 0
        start = str(snapshot_start(heartbeat.epoch, lsn))
        if start > progress.snapshot:
            progress.snapshot, progress.streaming_since_ms = start, 0
        if heartbeat.is_read:
            is_complete = False
            continue
        progress.streaming_since_ms = progress.streaming_since_ms or heartbeat.sent_ms
        has_settled = heartbeat.sent_ms - progress.streaming_since_ms >= SETTLE_MS
        is_complete = has_settled and progress.snapshot > progress.complete_snapshot
    return is_complete


def replaced_by(progress: Progress, table: Table, ranges: Ranges) -> Replaced:
    """Return the snapshot position below which the changelog's rows no longer count.

    `ranges` are the records that the table has read by then.
    """
    place = progress.table(table.name)
    reached = {**place.offsets, **{p: following for p, (_, following) in ranges.items()}}
    has_all = all(reached.get(p, 0) >= end for p, end in place.snapshot_ends.items())
    position = progress.complete_snapshot if has_all else place.swept
    return Replaced(position, is_swept=position == place.swept)
