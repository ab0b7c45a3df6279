"""A micro-batch over all tables: what the streaming query calls with each batch.

Tables run side by side on a few threads, each on its own, since a commit's stamp is thread-local.
One table's trouble stops that table alone; trouble of the lake as a whole fails the query, which
replays the batch when it is started again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pyspark import inheritable_thread_target
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.errors import TableError
from cdclake.iceberg.schemas import all_schemas
from cdclake.plan import Plan, Table
from glue_jobs.ingest.decode import EventDecoder
from glue_jobs.ingest.gap import read_gap
from glue_jobs.ingest.laps import Laps
from glue_jobs.ingest.plans import CurrentPlan
from glue_jobs.ingest.progress import Progress, TableProgress
from glue_jobs.ingest.table_batch import Outcome, Ranges, TableBatch
from glue_jobs.runtime.leases import Leases
from glue_jobs.runtime.objects import ObjectStore
from glue_jobs.runtime.tables import LakeTables

log = logging.getLogger("cdclake.stream")

TABLES_AT_ONCE = 4
MOST_PUT_OFF = 4


@dataclass(frozen=True, slots=True)
class Work:
    """One table's turn in a batch."""

    table: Table
    events: DataFrame
    ranges: Ranges
    sweeps: list[str]


class MicroBatch:
    """The stream's `foreachBatch` function, with what it remembers between batches."""

    def __init__(self, plans: CurrentPlan, control: ObjectStore, brokers: dict[str, str]) -> None:
        self._plans = plans
        self._control = control
        self._brokers = brokers
        self._leases = Leases(control, naming.STREAM_JOB)
        self._progress = Progress.load(control)
        self._created_for: Plan | None = None
        self._unsettled: set[str] = set()  # tables that need a turn even without new events
        self._decoders: dict[str, EventDecoder] = {}
        self._put_off = 0  # batches in a row that left the states for later
        self._threads = ThreadPoolExecutor(TABLES_AT_ONCE)
        self._leases.abandon_earlier_runs()

    def __call__(self, records: DataFrame, batch: int) -> None:
        """Process one micro-batch; an error fails the query, and Spark replays the batch."""
        started = time.monotonic()
        self._laps = Laps()
        events = records.persist()
        try:
            plan = self._plans.read()
            lake = LakeTables(events.sparkSession, plan.lake_database)
            self._create_tables(plan, lake)
            ranges, epoch = _survey(events, plan)
            self._decide_whether_to_apply(plan)
            self._note_epoch(plan, epoch)
            work = self._work(plan, events, ranges)
            self._laps.end("survey")
            self._run_tables(plan, lake, work)
            self._laps.end("tables")
            self._note(plan, ranges, batch, time.monotonic() - started)
        finally:
            events.unpersist()

    def _create_tables(self, plan: Plan, lake: LakeTables) -> None:
        """Every object exists before its first event, and whether or not one ever comes."""
        if plan == self._created_for:
            return
        for schema in all_schemas(plan):
            lake.create(schema)
        kept = {table.name for table in plan.tables}
        for removed in set(self._progress.tables) - kept:
            del self._progress.tables[removed]
        self._decoders = {table.name: EventDecoder(table, plan) for table in plan.tables}
        self._unsettled |= kept  # a crash may have come between an append and its merge
        self._created_for = plan

    def _decide_whether_to_apply(self, plan: Plan) -> None:
        """A stream that is late writes the logs first: `_current` shows their tail at once.

        The states follow in a later batch, many changes in one merge, and at the latest in every
        `MOST_PUT_OFF`th: else the tail would grow as long as the load lasts.
        """
        late = plan.mode == "always_on" and self._progress.seconds > plan.trigger_seconds
        self._put_off = (self._put_off + 1) % (MOST_PUT_OFF + 1) if late else 0

    def _note_epoch(self, plan: Plan, epoch: int) -> None:
        if epoch > self._progress.epoch:
            self._progress.epoch = epoch
            self._unsettled |= {table.name for table in plan.tables}

    def _work(self, plan: Plan, events: DataFrame, ranges: dict[str, Ranges]) -> list[Work]:
        self._take_resume_requests()
        sweeps = self._requested_sweeps()
        work = []
        for table in plan.tables:
            if table.delivery != "stream":
                continue
            progress = self._progress.table(table.name)
            share, records = ranges.get(table.topic, {}), events
            if progress.state == "stopped":
                if not progress.resume_requested:
                    continue
                records, share = self._gap(events.sparkSession, table, progress, share)
            if share or table.name in sweeps or table.name in self._unsettled:
                work.append(Work(table, records, share, sweeps.get(table.name, [])))
        return work

    def _gap(
        self, spark: SparkSession, table: Table, progress: TableProgress, share: Ranges
    ) -> tuple[DataFrame, Ranges]:
        """A resumed table's records, from where it stopped to the end of this batch."""
        ends = {partition: following for partition, (_, following) in share.items()}
        return read_gap(spark, self._brokers, table.topic, progress.offsets, ends)

    def _run_tables(self, plan: Plan, lake: LakeTables, work: list[Work]) -> None:
        def run(turn: Work) -> None:
            self._run_table(plan, lake, turn)

        on_thread: Callable[[Work], None] = inheritable_thread_target(run)
        for finished in [self._threads.submit(on_thread, turn) for turn in work]:
            finished.result()

    def _run_table(self, plan: Plan, lake: LakeTables, turn: Work) -> None:
        progress = self._progress.table(turn.table.name)
        batch = TableBatch(
            lake,
            plan,
            turn.table,
            self._leases,
            self._decoders[turn.table.name],
            apply_now=self._put_off == 0,
        )
        try:
            outcome = batch.run(
                turn.events, turn.ranges, epoch=self._progress.epoch, sweeps=turn.sweeps
            )
        except (TableError, AnalysisException) as error:
            self._stop(progress, turn, str(error).splitlines()[0])
            return
        for partition, (_, following) in turn.ranges.items():
            progress.offsets[partition] = following
        self._forget_sweeps(turn)
        if outcome.applied:
            self._unsettled.discard(turn.table.name)
        else:
            self._unsettled.add(turn.table.name)
        if progress.state == "stopped":
            progress.state, progress.quarantined, progress.last_error = "streaming", 0, None
            progress.resume_requested = False
        self._judge(plan, progress, turn.table, outcome)

    def _judge(self, plan: Plan, progress: TableProgress, table: Table, outcome: Outcome) -> None:
        """Stop a table that refuses too much: its declaration no longer fits its source."""
        progress.quarantined += outcome.quarantined
        if progress.quarantined > plan.stop_table_after:
            progress.state = "stopped"
            progress.last_error = (
                f"{progress.quarantined} events refused, more than stop_table_after="
                f"{plan.stop_table_after}; see {naming.QUARANTINE} for the reasons, mend the "
                "cause, then `cdclake resume`"
            )
            log.error("table %s stopped: %s", table.name, progress.last_error)

    def _stop(self, progress: TableProgress, turn: Work, reason: str) -> None:
        """Stop the table before this batch: its own resume offsets are where its share begins."""
        for partition, (first, _) in turn.ranges.items():
            progress.offsets.setdefault(partition, first)
        progress.state, progress.last_error = "stopped", reason
        progress.resume_requested = False
        log.error("table %s stopped: %s", turn.table.name, reason)

    def _take_resume_requests(self) -> None:
        for name in list(self._control.names("resume")):
            progress = self._progress.tables.get(name.removesuffix(".json"))
            if progress is not None and progress.state == "stopped":
                progress.resume_requested = True
            self._control.delete(f"resume/{name}")

    def _requested_sweeps(self) -> dict[str, list[str]]:
        requested: dict[str, list[str]] = {}
        for name in self._control.names("sweeps"):
            stored = self._control.read(f"sweeps/{name}")
            if stored is not None:
                requested[name.removesuffix(".json")] = [stored.content["position"]]
        return requested

    def _forget_sweeps(self, turn: Work) -> None:
        if turn.sweeps:
            self._control.delete(f"sweeps/{turn.table.name}.json")

    def _note(self, plan: Plan, ranges: dict[str, Ranges], batch: int, seconds: float) -> None:
        progress = self._progress
        progress.batch, progress.seconds = batch, round(seconds, 3)
        progress.events = sum(
            following - first for topic in ranges.values() for first, following in topic.values()
        )
        for partition, (_, following) in ranges.get(plan.heartbeat_rows_topic, {}).items():
            progress.heartbeat_offsets[partition] = following
        progress.save(self._control)
        log.info("batch %d: %d events in %.1f s; %s", batch, progress.events, seconds, self._laps)


def _survey(events: DataFrame, plan: Plan) -> tuple[dict[str, Ranges], int]:
    """The batch's offset ranges by topic, and the newest epoch that a heartbeat was written in."""
    is_beat = F.col("topic") == plan.heartbeat_rows_topic
    epoch = F.get_json_object(F.col("value").cast("string"), f"$.{naming.EPOCH}").cast("int")
    rows = (
        events.groupBy("topic", "partition")
        .agg(
            F.min("offset").alias("first"),
            (F.max("offset") + 1).alias("following"),
            F.max(F.when(is_beat, epoch)).alias("epoch"),
        )
        .collect()
    )
    ranges: dict[str, dict[int, tuple[int, int]]] = {}
    for row in rows:
        ranges.setdefault(row["topic"], {})[row["partition"]] = (row["first"], row["following"])
    return dict(ranges), max((row["epoch"] or 0 for row in rows), default=0)
