"""Micro-batch over all tables: the function that the streaming query calls with each batch.

One Spark job decodes the records of all topics and writes the changelogs' files. Then the driver
commits them, table by table on several threads, and updates the states that are due. A failing
table stops only itself; a failure of the whole lake fails the query, which replays the batch after
its restart.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Protocol, TypeVar

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession

from cdclake import naming
from cdclake.erasure_register import ErasureRegister
from cdclake.fail_points import reach
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.control.plan_watcher import PlanWatcher
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.requests import take_resumes
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.control.topic_state import expired_records
from cdclake.jobs.runtime.logs import bound
from cdclake.jobs.runtime.quiet_consumer import QuietConsumer
from cdclake.jobs.runtime.session import share_among_cores
from cdclake.jobs.stream import topic_check
from cdclake.jobs.stream.apply_scheduler import ApplyScheduler
from cdclake.jobs.stream.changelog_job import DecodedBatch, Ranges, TableShare, run_changelog_job
from cdclake.jobs.stream.epoch_snapshot import EpochSnapshot, replaced_by
from cdclake.jobs.stream.inline_compaction import InlineCompaction
from cdclake.jobs.stream.inline_expiration import InlineExpiration
from cdclake.jobs.stream.inline_views import InlineViewRenewal
from cdclake.jobs.stream.kafka_range import read_gap
from cdclake.jobs.stream.stage_timer import StageTimer
from cdclake.jobs.stream.stamp_renewal import StampRenewal
from cdclake.jobs.stream.state_round import StateRound
from cdclake.jobs.stream.stream_tables import StreamTables
from cdclake.jobs.stream.table_errors import judge, stop, stop_after
from cdclake.jobs.stream.table_stream import ChangelogState, Outcome, Portion, TableStream
from cdclake.jobs.stream.table_work import Work, in_order
from cdclake.jobs.stream.undeclared_columns import undeclared_stops
from cdclake.plan import Plan, Table

log = logging.getLogger("cdclake.stream")
Item = TypeVar("Item")

MAX_CONCURRENT_COMMITS = 16  # they wait for Glue and S3 most of the time


class RequestedOperations(Protocol):
    """Executor of the operations requested from the stream; the entry script supplies it."""

    def run(
        self,
        plan: Plan,
        events: DataFrame,
        ranges: Mapping[str, Ranges],
        progress: Progress,
        stream_of: Callable[[Table], TableStream],
    ) -> None:
        """Execute the possible requests; call it after the batch's events are appended."""


class MicroBatch:
    """The stream's `foreachBatch` function and its state between batches."""

    def __init__(
        self,
        plans: PlanWatcher,
        control: ObjectStore,
        brokers: dict[str, str],
        operations: RequestedOperations,
        topics: topic_check.Topics | None = None,
        views: InlineViewRenewal | None = None,
        erasures: ErasureRegister | None = None,
    ) -> None:
        self._topics = topic_check.TopicCheck(topics or topic_check.NoTopics())
        self._epochs = EpochSnapshot(topics or topic_check.NoTopics())
        self._plans = plans
        self._control = control
        self._brokers = brokers
        self._operations = operations
        leases = Leases(control, naming.STREAM_JOB)
        self._progress = Progress.load(control)
        self._progress.take_over(control)
        self._tables = StreamTables(control, leases, self._progress)
        self._scheduler = ApplyScheduler()
        self._compaction = InlineCompaction(leases)
        self._expiration = InlineExpiration(leases)
        self._stamps = StampRenewal(leases)
        self._views = views
        self._erasures = erasures
        self._consumer = QuietConsumer()
        self._commits = ThreadPoolExecutor(MAX_CONCURRENT_COMMITS)
        leases.abandon_earlier_runs()

    def __call__(self, records: DataFrame, batch: int) -> None:
        """Process one micro-batch; an error fails the query, and Spark replays the batch."""
        with bound(batch=batch, epoch=self._progress.epoch):
            self._process(records, batch)

    def _process(self, records: DataFrame, batch: int) -> None:
        started, timer = time.monotonic(), StageTimer()
        share_among_cores(records.sparkSession)
        self._consumer.extend(records.sparkSession)
        # Before the plan: operators fix it, then resume.
        take_resumes(self._control, self._progress)
        plan = self._plans.read()
        self._follow(plan, records.sparkSession)
        if self._erasures is not None:
            self._tables.drop_events_of(self._erasures.read())
        changelogs = self._read_changelogs()
        targets = {
            stream.table.topic: stream.target(changelogs[stream.table.name])
            for stream in self._tables
            if stream.table.name in changelogs
        }
        decoded = run_changelog_job(records, plan, targets, self._tables.quarantine_target())
        timer.end("decode")
        self._note_decoded(plan, decoded)
        work = self._work(plan, records, decoded, changelogs)
        work = self._append_all(work)
        timer.end("append")
        updated, applying = self._apply_all(work, records.sparkSession)
        timer.end("apply")
        self._maintain(work, plan)
        self._end_failures(work, updated)
        self._operations.run(plan, records, decoded.ranges, self._progress, self._operated)
        seconds = time.monotonic() - started
        self._scheduler.note_batch(
            busy=bool(decoded.arriving(plan)),
            seconds=seconds,
            states=len(updated),
            merging=applying,
        )
        self._note(plan, decoded, batch, seconds)
        log.info("batch %d: %d events in %.1f s; %s", batch, decoded.events, seconds, timer)

    def _follow(self, plan: Plan, spark: SparkSession) -> None:
        """Take up a new plan: create its tables."""
        if self._tables.follow(plan, spark):
            self._topics.note_rejoining(plan, self._progress, self._tables.lake)
            # A crash may have occurred between append and apply.
            self._scheduler.wait(self._tables.all())

    def _read_changelogs(self) -> dict[str, ChangelogState]:
        """Read the changelogs of the tables that flow; stop those that cannot be read."""
        read: dict[str, ChangelogState] = {}

        def read_one(stream: TableStream) -> None:
            try:
                read[stream.table.name] = stream.read_changelog()
            except Exception as error:
                stop_after(error, stream, {})

        flowing = [stream for stream in self._tables if stream.place.is_streaming]
        _run_all(self._commits, read_one, flowing)
        if self._progress.batch < 0:
            for name, changelog in read.items():
                if changelog.stamped.stamp is not None:
                    self._tables.of(name).take_offsets(changelog.stamp)
        return read

    def _note_decoded(self, plan: Plan, decoded: DecodedBatch) -> None:
        """Note a new epoch or the end of its snapshot, and stop tables that may not go on."""
        self._epochs.note(plan, decoded, self._progress)
        for table, error in self._topics.problems(plan, self._progress):
            stop(self._tables.of(table.name), {}, str(error))
        flowing = self._progress.flowing(plan, time.time())
        for table, reason, columns in undeclared_stops(self._control, plan, flowing):
            ranges = decoded.ranges.get(table.topic, {})
            stop(self._tables.of(table.name), ranges, reason, columns)

    def _work(
        self,
        plan: Plan,
        records: DataFrame,
        decoded: DecodedBatch,
        changelogs: Mapping[str, ChangelogState],
    ) -> list[Work]:
        flowing = self._progress.flowing(plan, time.time())
        streams = [stream for stream in self._tables if stream.table.name in flowing]
        to_apply = self._scheduler.chosen(plan, streams, decoded.arriving(plan))
        work = []
        for stream in self._tables:
            ranges = decoded.ranges.get(stream.table.topic, {})
            apply_now = stream.table.name in to_apply
            if not stream.place.is_streaming:
                work += self._gap_work(stream, ranges, apply_now)
            elif not self._stop_at_gap(stream, ranges):
                share = decoded.shares.get(stream.table.topic, TableShare())
                portion = Portion(records, ranges, share, changelogs[stream.table.name])
                work.append(Work(stream, records, ranges, apply_now, portion))
        return work

    def _stop_at_gap(self, stream: TableStream, ranges: Ranges) -> bool:
        """Stop the table if records are missing before this batch; return whether it was stopped.

        A stream without its checkpoint starts at Kafka's first record; earlier ones may be expired.
        """
        firsts = {partition: first for partition, (first, _) in ranges.items()}
        reason = expired_records(stream.place.offsets, firsts)
        if reason is not None:
            stop(stream, {}, str(topic_check.needs_resync(stream.table, reason)))
        return reason is not None

    def _gap_work(self, stream: TableStream, ranges: Ranges, apply_now: bool) -> list[Work]:
        """Return the work on a stopped table that is due: the records that it has missed."""
        if not stream.place.is_due(time.time()) or not self._tables.is_created(stream):
            return []
        try:
            records, missed = self._read_gap(stream, ranges)
            if not missed:
                stream.read_changelog()  # the state may lack rows that it had before
        except Exception as error:
            stop_after(error, stream, {})
            return []
        if not missed:
            self._scheduler.wait([stream])
            stream.place.flow()
        return [Work(stream, records, missed, apply_now, portion=None)]

    def _read_gap(self, stream: TableStream, ranges: Ranges) -> tuple[DataFrame, Ranges]:
        """Read a resumed table's records from where it stopped to the end of this batch."""
        table, place = stream.table, stream.place
        self._topics.check_gap(table, place)
        ends = {partition: following for partition, (_, following) in ranges.items()}
        resume = {} if place.skips_gap else place.offsets
        records, missed = read_gap(stream.lake.spark, self._brokers, table, resume, ends)
        topic = self._topics.state(table) if place.skips_gap else None
        if topic is not None:
            stream.accept_topic(topic)
            topic_check.accept_topic(place, topic)
        return records, missed

    def _append_all(self, work: Sequence[Work]) -> list[Work]:
        """Append to all changelogs that have new events or rows to replace.

        Returns the work on tables that no error has stopped; their states may be updated.
        """
        due = [
            item
            for item in work
            if item.ranges or not replaced_by(self._progress, item.stream.table, {}).is_swept
        ]
        failed: set[str] = set()
        _run_all(self._commits, lambda item: self._append(item, failed), in_order(due))
        return [item for item in work if item.stream.table.name not in failed]

    def _append(self, item: Work, failed: set[str]) -> None:
        stream = item.stream
        try:
            replaced = replaced_by(self._progress, stream.table, item.ranges)
            outcome = item.append(epoch=self._progress.epoch, replaced=replaced)
        except Exception as error:
            failed.add(stream.table.name)
            with self._tables.noting:
                stop_after(error, stream, item.ranges)
            return
        with self._tables.noting:
            self._note_outcome(item, outcome)
            if stream.place.is_streaming:
                stream.place.swept = replaced.position
                if not replaced.is_swept:
                    stream.place.note_complete_read(replaced.position)

    def _note_outcome(self, item: Work, outcome: Outcome) -> None:
        stream = item.stream
        stream.place.advance(
            {p: outcome.taken.get(p, first) for p, (first, _) in item.ranges.items()}
        )
        self._scheduler.wait([stream])
        stream.place.flow()
        judge(stream, outcome)

    def _apply_all(self, work: Iterable[Work], spark: SparkSession) -> tuple[frozenset[str], float]:
        """Update the states that are due and behind; return these tables and the seconds of all."""
        due = [
            item.stream
            for item in work
            if item.apply_now and item.stream.schedule.behind_since is not None
        ]
        if not due:
            return frozenset(), 0.0
        started = time.monotonic()
        states = StateRound(spark, self._stop_after)
        here = [stream for stream in due if stream.table.apply == "each_batch"]
        states.run(here, lambda work, streams: _run_all(self._commits, work, streams))
        for stream in states.updated:
            self._compaction.note(stream)
            if self._views is not None:
                self._views.note(stream)
        for stream in (*states.caught_up, *(s for s in due if s not in here)):
            self._scheduler.settle(stream)
        updated = frozenset(stream.table.name for stream in states.updated)
        return updated, time.monotonic() - started

    def _stop_after(self, error: Exception, stream: TableStream) -> None:
        with self._tables.noting:
            stop_after(error, stream, {})

    def _maintain(self, work: Iterable[Work], plan: Plan) -> None:
        """Compact one state, expire old snapshots of one table, renew one's stamps and due views.

        The quarantine, which all tables share, is due like a table.
        """
        flowing = [item.stream for item in work if item.stream.place.is_streaming]
        for schedule, run in (
            (self._compaction.chosen, self._compaction.compact),
            (self._expiration.chosen, self._expiration.expire),
        ):
            stream = schedule(flowing)
            if stream is not None:
                self._run(stream, run)
        self._expiration.expire_quarantine(self._tables.lake)
        self._stamps.renew_due(flowing, is_scheduled=plan.mode == "scheduled")
        if self._views is not None:
            _run_all(self._commits, self._views.renew, self._views.chosen(flowing))

    def _end_failures(self, work: Iterable[Work], updated: frozenset[str]) -> None:
        """Restart the count of failures of tables whose states have been updated or are complete.

        An append alone is not enough: otherwise a state that always fails would never be reported.
        """
        for stream in (item.stream for item in work):
            is_current = stream.schedule.behind_since is None
            if stream.place.is_streaming and (is_current or stream.table.name in updated):
                stream.place.failures = 0

    def _run(self, stream: TableStream, work: Callable[[TableStream], None]) -> None:
        try:
            work(stream)
        except Exception as error:
            stop_after(error, stream, {})

    def _operated(self, table: Table) -> TableStream:
        """Return the table's stream for an operation, which appends to its changelog."""
        # If another job holds the state's lease, a later batch applies it.
        stream = self._tables.of(table.name)
        self._scheduler.wait([stream])
        return stream

    def _note(self, plan: Plan, decoded: DecodedBatch, batch: int, seconds: float) -> None:
        progress = self._progress
        progress.batch, progress.seconds, progress.events = batch, round(seconds, 3), decoded.events
        for partition, (_, following) in decoded.ranges.get(plan.heartbeat_rows_topic, {}).items():
            progress.heartbeat_offsets[partition] = following
        progress.heartbeat_committed_us = max(
            progress.heartbeat_committed_us, decoded.heartbeat_committed_us
        )
        for stream in self._tables.all():
            stream.place.state_behind_since = self._scheduler.behind_since(stream)
        reach("before_progress")
        progress.save(self._control)
        reach("after_progress")


def _run_all(threads: Executor, work: Callable[[Item], None], items: Iterable[Item]) -> None:
    """Run the work for all items on threads of the pool; raise the first error at the end."""
    on_thread: Callable[[Item], None] = inheritable_thread_target(work)
    # Each with the fields that are bound to this thread's log lines.
    running = [threads.submit(copy_context().run, on_thread, item) for item in items]
    wait(running)
    for finished in running:
        finished.result()
