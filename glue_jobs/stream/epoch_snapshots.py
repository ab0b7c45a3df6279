"""Snapshots of a new epoch: until a table's is complete, its rows of earlier epochs stay.

A new epoch begins with a snapshot of every table, which does not report rows deleted in the gap; a
sweep deletes them. Written before the snapshot's rows are there, it would empty the table for its
readers. The connector streams only after its snapshot of all tables, so the first streamed
heartbeat shows that every row of it is in Kafka. Empty tables have no row that could show it, and a
connector that fails within its snapshot takes it again from the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import SparkSession

from cdclake.jobs.control.progress import EpochSnapshot, Progress, TableProgress
from cdclake.jobs.runtime.kafka import offsets
from cdclake.plan import Plan


def begin_epoch(progress: Progress, plan: Plan, epoch: int) -> bool:
    """Note a new epoch and that its snapshot is being taken; return False for a known epoch."""
    if epoch <= progress.epoch:
        return False
    progress.epoch = epoch
    for table in plan.tables:
        progress.table(table.name).snapshot = EpochSnapshot(epoch=epoch)
    return True


def note_streamed(
    progress: Progress, plan: Plan, spark: SparkSession, brokers: Mapping[str, str], epoch: int
) -> None:
    """Store the end offsets of the tables' snapshots once a streamed heartbeat has shown the end.

    `epoch` is that of the newest streamed heartbeat in this batch.
    """
    progress.streamed_epoch = max(progress.streamed_epoch, epoch)
    waiting = {
        table.topic: snapshot
        for table in plan.tables
        if (snapshot := progress.table(table.name).snapshot) is not None
        and snapshot.ends is None
        and snapshot.epoch <= progress.streamed_epoch
    }
    if waiting:
        found = offsets(spark, brokers, waiting)
        for topic, snapshot in waiting.items():
            snapshot.ends = found.get(topic, {})


def is_complete(
    progress: Progress, table: TableProgress, shares: Iterable[Mapping[int, tuple[int, int]]]
) -> bool:
    """Return whether the epoch's snapshot of the table is in the changelog after these shares."""
    if progress.streamed_epoch < progress.epoch:
        return False
    if table.snapshot is None or table.snapshot.ends is None:
        return table.snapshot is None
    after = dict(table.offsets)
    for share in shares:
        after |= {partition: end for partition, (_, end) in share.items()}
    return all(after.get(partition, 0) >= end for partition, end in table.snapshot.ends.items())
