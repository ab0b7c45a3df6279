"""Micro-batch over all tables: the function that the streaming query calls with each batch.

Tables run concurrently on a few threads, each table on one thread, since a commit's stamp is
thread-local. A failing table stops only itself; a failure of the whole lake fails the query, which
replays the batch after its restart.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame

from cdclake import naming
from cdclake.errors import TableError
from cdclake.fail_points import reach
from cdclake.iceberg.schemas import changes_schema, quarantine_schema, state_schema
from cdclake.iceberg.widening import widened_tables
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.control.plan_watcher import PlanWatcher
from cdclake.jobs.control.progress import Progress, TableProgress
from cdclake.jobs.control.requests import take_resumes
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.control.topic_state import expired_records
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp
from cdclake.jobs.iceberg.error_policy import hold_reason, stop_reason
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.runtime.session import share_among_cores
from cdclake.jobs.stream import topic_check
from cdclake.jobs.stream.apply_scheduler import ApplyScheduler
from cdclake.jobs.stream.batch_slices import BatchSlices
from cdclake.jobs.stream.batch_survey import BatchSurvey, survey
from cdclake.jobs.stream.epoch_snapshot import EpochSnapshot, replaced_by
from cdclake.jobs.stream.inline_compaction import InlineCompaction
from cdclake.jobs.stream.inline_expiration import InlineExpiration
from cdclake.jobs.stream.kafka_range import read_gap
from cdclake.jobs.stream.reader import TableReader
from cdclake.jobs.stream.schema_drift import KnownColumns, column_keys, describe_drift
from cdclake.jobs.stream.stage_timer import StageTimer
from cdclake.jobs.stream.stamp_renewal import StampRenewal
from cdclake.jobs.stream.table_batch import Outcome, Ranges, RequestedOperations, TableBatch
from cdclake.jobs.stream.table_work import Work, in_order
from cdclake.jobs.stream.undeclared_columns import undeclared_stops
from cdclake.plan import Plan, Table
from cdclake.stream_requests import request_replay

log = logging.getLogger("cdclake.stream")

# Planning a table's queries keeps one driver core busy: more tables at once would only delay each
# other. With the largest first, most events are in the lake before the batch ends.
MAX_CONCURRENT_TABLES = max(2, os.cpu_count() or 1)


class MicroBatch:
    """The stream's `foreachBatch` function and its state between batches."""

    def __init__(
        self,
        plans: PlanWatcher,
        control: ObjectStore,
        brokers: dict[str, str],
        repairs: RequestedOperations,
        topics: topic_check.Topics | None = None,
    ) -> None:
        self._topics = topic_check.TopicCheck(topics or topic_check.NoTopics())
        self._epochs = EpochSnapshot(topics or topic_check.NoTopics())
        self._plans = plans
        self._control = control
        self._brokers = brokers
        self._leases = Leases(control, naming.STREAM_JOB)
        self._progress = Progress.load(control)
        self._progress.take_over(control)
        self._noting = threading.RLock()  # of the tables' threads, which change the progress
        self._repairs = repairs
        self._created_for: Plan | None = None
        self._uncreated: set[str] = set()  # tables whose creation or evolution failed
        self._turns = ApplyScheduler()
        self._packing = InlineCompaction(self._leases)
        self._thinning = InlineExpiration(self._leases)
        self._stamps = StampRenewal(self._leases)
        self._applying: list[float] = []  # seconds per applied state in this batch
        self._readers: dict[str, TableReader] = {}
        self._slow_decode_tables: set[str] = set()  # tables whose last batch needed slow decoding
        self._slices = BatchSlices(brokers)
        self._threads = ThreadPoolExecutor(MAX_CONCURRENT_TABLES)
        self._leases.abandon_earlier_runs()

    def __call__(self, records: DataFrame, batch: int) -> None:
        """Process one micro-batch; an error fails the query, and Spark replays the batch."""
        slices = self._slices
        if slices.is_large_expected or not self._process(records, batch, is_whole=True):
            for part in slices.of(records, self._plans.read()):
                self._process(part, batch)

    def _process(self, records: DataFrame, batch: int, *, is_whole: bool = False) -> bool:
        """Process a slice, or a whole batch; return False for a batch that is too large."""
        started = time.monotonic()
        self._laps, self._applying = StageTimer(), []
        share_among_cores(records.sparkSession)
        with persisted(records) as events:
            # Before the plan: operators fix it, then resume.
            take_resumes(self._control, self._progress)
            plan = self._plans.read()
            lake = LakeTables(events.sparkSession, plan.lake_database)
            self._create_tables(plan, lake)
            seen = survey(events, plan)
            if is_whole and not self._slices.fits(seen.size, events.sparkSession):
                return False
            self._note_survey(plan, lake, events, seen)
            work = self._work(plan, lake, events, seen)
            self._laps.end("survey")
            self._run_tables(plan, lake, work)
            stopped = {n for n, place in self._progress.tables.items() if place.state == "stopped"}
            self._stamps.renew_one(lake, (t for t in plan.tables if t.name not in stopped))
            self._laps.end("tables")
            self._repair(plan, lake, events, seen.ranges)
            seconds = time.monotonic() - started
            self._note_turns(bool(seen.arriving(plan)), seconds)
            self._note(plan, seen, batch, seconds)
        return True

    def _note_survey(
        self, plan: Plan, lake: LakeTables, events: DataFrame, seen: BatchSurvey
    ) -> None:
        """Note a new epoch or the end of its snapshot, and stop tables that may not go on."""
        self._epochs.note(plan, events, seen, self._progress)
        if self._progress.batch < 0:
            self._take_offsets_from_logs(plan, lake)
        for table, error in self._topics.problems(plan, self._progress):
            self._stop(self._progress.table(table.name), table, {}, str(error))
        flowing = self._progress.flowing(plan, time.time())
        for table, reason, columns in undeclared_stops(self._control, plan, flowing):
            ranges = seen.ranges.get(table.topic, {})
            self._stop(self._progress.table(table.name), table, ranges, reason, columns)

    def _create_tables(self, plan: Plan, lake: LakeTables) -> None:
        """Create all Iceberg tables, whether or not events arrive."""
        if plan == self._created_for:
            return
        lake.create(quarantine_schema(plan))
        for table in plan.tables:
            self._create_table(plan, table, lake)
            self._progress.table(table.name).forget_all_but(column_keys(table))
        kept = {table.name for table in plan.tables}
        for removed in set(self._progress.tables) - kept:
            del self._progress.tables[removed]
        self._topics.note_rejoining(plan, self._progress, lake)
        self._readers = {table.name: TableReader(table, plan) for table in plan.tables}
        self._turns.wait(kept)  # a crash may have occurred between append and apply
        for widened in widened_tables(self._created_for, plan):
            # Events that the previous batch quarantined, with any earlier request to replay them.
            request_replay(self._control, widened)
        self._created_for = plan

    def _create_table(self, plan: Plan, table: Table, lake: LakeTables) -> None:
        """Create changelog and state; stop the table if they cannot be evolved."""
        try:
            for schema in (changes_schema(table, plan), state_schema(table, plan)):
                lake.create(schema)
            self._uncreated.discard(table.name)
        except Exception as error:
            if not self._stop_after(error, self._progress.table(table.name), table, {}):
                raise
            self._uncreated.add(table.name)

    def _is_created(self, plan: Plan, table: Table, lake: LakeTables) -> bool:
        """Create the table now if that failed before; return whether it exists as planned."""
        if table.name in self._uncreated:
            self._create_table(plan, table, lake)
        return table.name not in self._uncreated

    def _stop_after(
        self, error: Exception, progress: TableProgress, table: Table, ranges: Ranges
    ) -> bool:
        """Stop the table, or hold it back, after an error; return False if the stream must fail."""
        held, stopped = hold_reason(table.name, error), stop_reason(table.name, error)
        if held is not None:
            log.warning("table %s: held back", table.name, exc_info=error)
            progress.keep_offsets(ranges)
            progress.hold(held, time.time())
        elif stopped is not None:
            self._stop(progress, table, ranges, stopped)
        return held is not None or stopped is not None

    def _take_offsets_from_logs(self, plan: Plan, lake: LakeTables) -> None:
        """Restore offsets from stamps if the progress was lost, so that gaps are still detected."""
        for table in plan.tables:
            progress = self._progress.table(table.name)
            flows = table.delivery == "stream" and progress.state != "stopped"
            if flows and (stamp := lake.stamped(table.changes).stamp) is not None:
                read = ChangesStamp.from_json(stamp)
                progress.offsets, progress.topic_id = dict(read.offsets), read.topic_id

    def _work(
        self, plan: Plan, lake: LakeTables, events: DataFrame, seen: BatchSurvey
    ) -> list[Work]:
        flowing = self._progress.flowing(plan, time.time())
        to_apply = self._turns.chosen(plan, flowing, seen.arriving(plan))
        work = []
        for table in plan.tables:
            if table.delivery != "stream":
                continue
            progress = self._progress.table(table.name)
            share, records = seen.ranges.get(table.topic, {}), events
            later: list[tuple[DataFrame, Ranges]] = []
            if progress.state == "stopped":
                if not progress.is_due(time.time()) or not self._is_created(plan, table, lake):
                    continue
                gap = self._gap(plan, lake, table, progress, share)
                if gap is None:
                    continue
                (records, share), *later = gap
                if not share:
                    progress.flow()
            elif self._stop_at_gap(table, progress, share):
                continue
            apply_now = table.name in to_apply
            is_due = not replaced_by(self._progress, table, share).is_swept
            if share or is_due or (apply_now and table.name in self._turns.waiting):
                work.append(Work(table, records, share, apply_now, later))
        return work

    def _stop_at_gap(self, table: Table, progress: TableProgress, share: Ranges) -> bool:
        """Stop the table if records are missing before this batch; return whether it was stopped.

        A stream without its checkpoint starts at Kafka's first record; earlier ones may be expired.
        """
        reason = expired_records(progress.offsets, {p: first for p, (first, _) in share.items()})
        if reason is not None:
            self._stop(progress, table, {}, str(topic_check.needs_resync(table, reason)))
        return reason is not None

    def _gap(
        self, plan: Plan, lake: LakeTables, table: Table, progress: TableProgress, share: Ranges
    ) -> list[tuple[DataFrame, Ranges]] | None:
        """Read a resumed table's records from where it stopped to the end of this batch.

        Returns them in slices, or None if Kafka no longer has all of them: the table stays stopped.
        """
        try:
            self._topics.check_gap(table, progress)
            ends = {partition: following for partition, (_, following) in share.items()}
            resume = {} if progress.gap_given_up else progress.offsets
            records, missed = read_gap(lake.spark, self._brokers, table, resume, ends)
            topic = self._topics.state(table) if progress.gap_given_up else None
            if topic is not None:
                self._table_batch(plan, lake, table, apply_now=False).accept_topic(topic)
                topic_check.accept_topic(progress, topic)
            return self._slices.of_gap(records, table.topic, missed)
        except Exception as error:
            if not self._stop_after(error, progress, table, {}):
                raise
            return None

    def _table_batch(
        self, plan: Plan, lake: LakeTables, table: Table, *, apply_now: bool
    ) -> TableBatch:
        place = self._progress.table(table.name)
        return TableBatch(
            lake,
            plan,
            table,
            self._leases,
            self._readers[table.name],
            apply_now=apply_now,
            known=KnownColumns(first_seen=place.first_seen, suspected=place.suspected),
            needed_slow_decode=table.name in self._slow_decode_tables,
            topic_id=place.topic_id,
            remember=lambda known: self._remember_columns(place, known),
        )

    def _remember_columns(self, place: TableProgress, known: KnownColumns) -> None:
        """Store before the append which columns were seen: a replayed batch has no such event."""
        with self._noting:
            place.first_seen = dict(known.first_seen)
            self._progress.save(self._control)

    def _run_tables(self, plan: Plan, lake: LakeTables, work: list[Work]) -> None:
        to_pack = self._packing.chosen(plan)
        to_thin = self._thinning.chosen(turn.table for turn in work)

        def run(turn: Work) -> None:
            name = turn.table.name
            for step in turn.steps():
                self._run_table(plan, lake, step, packed=name == to_pack, thinned=name == to_thin)
                if self._progress.table(name).state == "stopped":
                    return

        on_thread: Callable[[Work], None] = inheritable_thread_target(run)
        for finished in [self._threads.submit(on_thread, turn) for turn in in_order(work)]:
            finished.result()

    def _run_table(
        self, plan: Plan, lake: LakeTables, turn: Work, *, packed: bool, thinned: bool
    ) -> None:
        progress = self._progress.table(turn.table.name)
        batch = self._table_batch(plan, lake, turn.table, apply_now=turn.apply_now)
        try:
            replaced = replaced_by(self._progress, turn.table, turn.ranges)
            epoch = self._progress.epoch
            outcome = batch.run(turn.events, turn.ranges, epoch=epoch, replaced=replaced)
            if packed and outcome.applying:  # a late stream appends to its changelogs first
                self._packing.compact(lake, plan, turn.table)
            if thinned:
                self._thinning.thin(lake, turn.table)
        except Exception as error:
            with self._noting:
                is_stopped = self._stop_after(error, progress, turn.table, turn.ranges)
            if not is_stopped:
                raise
            return
        with self._noting:
            self._note_outcome(plan, turn, outcome)
            if progress.state != "stopped":
                progress.swept = replaced.position

    def _note_outcome(self, plan: Plan, turn: Work, outcome: Outcome) -> None:
        progress = self._progress.table(turn.table.name)
        if outcome.drift is not None:  # something was decoded
            slow = self._slow_decode_tables
            (slow.add if outcome.needs_slow_decode else slow.discard)(turn.table.name)
        for partition, (first, _) in turn.ranges.items():
            progress.offsets[partition] = outcome.taken.get(partition, first)
        if outcome.applied:
            self._turns.settle(turn.table.name)
            if outcome.applying:
                self._applying.append(outcome.applying)
                self._packing.note(turn.table.name)
        else:
            self._turns.wait([turn.table.name])
        progress.flow()
        self._judge(plan, progress, turn.table, outcome)

    def _note_turns(self, busy: bool, seconds: float) -> None:
        side_by_side = min(MAX_CONCURRENT_TABLES, len(self._applying))
        merging = sum(self._applying) / side_by_side if side_by_side else 0.0
        self._turns.note_batch(
            busy=busy, seconds=seconds, states=len(self._applying), merging=merging
        )

    def _repair(
        self, plan: Plan, lake: LakeTables, events: DataFrame, ranges: Mapping[str, Ranges]
    ) -> None:
        def batch_of(table: Table) -> TableBatch:
            # If another job holds the state's lease, a later batch applies it.
            self._turns.wait([table.name])
            return self._table_batch(plan, lake, table, apply_now=True)

        self._repairs.run(plan, events, ranges, self._progress, batch_of)

    def _judge(self, plan: Plan, progress: TableProgress, table: Table, outcome: Outcome) -> None:
        """Stop the table on schema drift or after too many refused events."""
        if outcome.drift is not None:
            progress.first_seen = dict(outcome.drift.known.first_seen)
            progress.suspected = list(outcome.drift.known.suspected)
            if outcome.drift.stop_offsets:
                progress.quarantined += outcome.quarantined
                message, remedy = describe_drift(table, outcome.drift)
                error = TableError(table.name, message, remedy)
                self._stop(progress, table, {}, str(error), columns=outcome.drift.columns)
                return
        if outcome.oversized is not None:
            log.error("table %s: %s", table.name, outcome.oversized)
            stops = plan.oversized_records == "stop"
            progress.note_oversized(table.name, outcome.oversized, stops=stops)
        if progress.note_refused(outcome.quarantined, plan.stop_table_after):
            log.error("table %s stopped: %s", table.name, progress.last_error)

    def _stop(
        self,
        progress: TableProgress,
        table: Table,
        ranges: Ranges,
        reason: str,
        columns: Sequence[str] = (),
    ) -> None:
        """Stop the table before this batch; it resumes at the start of its share."""
        progress.keep_offsets(ranges)
        progress.stop(reason, columns)
        log.error("table %s stopped: %s", table.name, reason)

    def _note(self, plan: Plan, seen: BatchSurvey, batch: int, seconds: float) -> None:
        progress = self._progress
        progress.batch, progress.seconds, progress.events = batch, round(seconds, 3), seen.events
        for partition, (_, following) in seen.ranges.get(plan.heartbeat_rows_topic, {}).items():
            progress.heartbeat_offsets[partition] = following
        progress.heartbeat_committed_us = max(
            progress.heartbeat_committed_us, seen.heartbeat_committed_us
        )
        reach("before_progress")
        progress.save(self._control)
        reach("after_progress")
        log.info("batch %d: %d events in %.1f s; %s", batch, progress.events, seconds, self._laps)
