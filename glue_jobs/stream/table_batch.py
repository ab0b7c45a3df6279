"""One table's share of a micro-batch: decode, quarantine, append, apply."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.position import Position, history_part
from cdclake.errors import CommitConflict, TableError
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.schemas import changes_schema
from cdclake.jobs.apply.change_stats import ChangeStats, stats_of
from cdclake.jobs.apply.state_table import Batch, applied_through, apply_changes
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.topic_state import TopicState
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp, moment_after
from cdclake.jobs.iceberg.lake_tables import LakeTables, StampedSnapshot
from cdclake.jobs.stream.append import (
    append_changes,
    ingested_at_column,
    next_stamp,
    sweep_row,
)
from cdclake.jobs.stream.batch_stats import (
    CARRIED_KEY_CHANGE,
    NEEDS_SLOW_DECODE,
    REFUSED,
    TRUNCATE,
    PartitionSummary,
)
from cdclake.jobs.stream.decode import REFUSAL
from cdclake.jobs.stream.deduplicate import (
    may_repeat,
    may_repeat_within,
    not_in_log,
    without_repeats,
)
from cdclake.jobs.stream.oversized_events import oversized_reason
from cdclake.jobs.stream.quarantine import quarantine, refused_records
from cdclake.jobs.stream.reader import Decoded, TableReader
from cdclake.jobs.stream.schema_drift import Drift, KnownColumns, find_drift
from cdclake.jobs.stream.stage_timer import StageTimer
from cdclake.plan import Plan, Table

log = logging.getLogger("cdclake.stream")

MIN_ROWS_PER_TASK = 20_000  # with fewer, a second task costs more than it saves
Ranges = Mapping[int, tuple[int, int]]  # Kafka partition -> first and next offset


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of a table's share of a batch."""

    appended: int
    quarantined: int
    applied: bool  # the state has caught up, or another job applies it
    applying: float = 0.0  # seconds spent on the state
    drift: Drift | None = None  # None: nothing was decoded
    needs_slow_decode: bool = False  # some events could only be decoded by field name
    taken: Mapping[int, int] = field(default_factory=dict)  # partition -> next offset
    oversized: str | None = None  # reason of an event that was too large for Kafka


@dataclass(frozen=True, slots=True)
class Replaced:
    """Rows that a complete snapshot has replaced: those below its position."""

    position: str = ""  # "": no snapshot is known to be complete
    is_swept: bool = True  # known: they are gone


@dataclass(frozen=True, slots=True)
class Log:
    """State of the changelog when a batch starts, and the current epoch."""

    stamped: StampedSnapshot
    stamp: ChangesStamp
    epoch: int


@dataclass(frozen=True, slots=True)
class TableBatch:
    """Processing of one table's records: append to the changelog and, if due, apply."""

    lake: LakeTables
    plan: Plan
    table: Table
    leases: Leases
    reader: TableReader
    apply_now: bool  # False: only append; a later batch applies
    known: KnownColumns = field(default_factory=KnownColumns)  # from earlier events
    needed_slow_decode: bool = False  # the last batch did; this one probably does
    topic_id: str = ""  # Kafka's id of the topic; "": not known
    # Called before the append if columns were seen for the first time.
    remember: Callable[[KnownColumns], None] = lambda known: None

    def run(
        self, events: DataFrame, ranges: Ranges, *, epoch: int, replaced: Replaced = Replaced()
    ) -> Outcome:
        """Process the records of the table's topic in `ranges`; a replay is idempotent.

        `epoch` is the newest seen in the whole stream. If the outcome's drift has stop offsets,
        only the records before them were processed, and replaced rows are not swept.
        """
        stamped, stamp = self.read_stamp()
        epoch = max(epoch, stamp.epoch)
        if not ranges and replaced.is_swept:
            return self._apply(stamp.ingested_through, None, 0)
        laps = StageTimer()
        fresh = self._fresh(events, ranges, stamp)
        with self.reader.read(fresh, needs_slow_decode=self.needed_slow_decode) as decoded:
            drift = find_drift(decoded.rows, self.table, decoded.parts, self.known)
            laps.end("decode")
            if drift.known.first_seen != self.known.first_seen:
                self.remember(drift.known)
            if not drift.stop_offsets:
                log_now = Log(stamped, stamp, epoch)
                outcome = self._ingest(decoded, log_now, replaced, laps)
                taken = {partition: end for partition, (_, end) in ranges.items()}
                needs_slow_decode = decoded.show(NEEDS_SLOW_DECODE)
                return replace(
                    outcome,
                    drift=drift,
                    taken=taken,
                    needs_slow_decode=needs_slow_decode,
                    oversized=oversized_reason(decoded),
                )
        before = _before(ranges, drift.stop_offsets)
        outcome = self.run(_records_before(events, drift.stop_offsets), before, epoch=epoch)
        return replace(outcome, drift=drift)

    def _ingest(
        self,
        decoded: Decoded,
        log_now: Log,
        replaced: Replaced,
        laps: StageTimer,
    ) -> Outcome:
        """Quarantine refused events, append the others and apply them."""
        stamp = log_now.stamp
        quarantined = self._quarantine(decoded)
        # The first snapshot's rows arrive before the first heartbeat, which carries the epoch.
        epoch = log_now.epoch or min(_epochs(decoded.parts), default=0)
        sweep = self._missing_sweep(decoded.parts, log_now.stamped, replaced)
        facts = _facts(decoded, sweeps=1 if sweep else 0)
        if facts.events == 0:
            return self._apply(stamp.ingested_through, None, quarantined)
        ingested_at = moment_after(stamp)
        rows = self._rows_to_append(decoded, log_now.stamped, sweep, ingested_at)
        following = next_stamp(
            stamp, decoded.parts, epoch=epoch, ingested_at=ingested_at, topic_id=self.topic_id
        )
        append_changes(
            rows,
            self.lake,
            self.table.changes,
            read_from=log_now.stamped.snapshot_id,
            follows=stamp.ingested_through,
            stamp=following,
        )
        laps.end("append")
        batch = Batch(rows=rows, facts=facts, follows=stamp.ingested_through)
        outcome = self._apply(ingested_at, batch, quarantined)
        laps.end("apply")
        log.info("%s: %d events, %s", self.table.name, facts.events, laps)
        return outcome

    def add(self, rows: DataFrame, *, read_from: int | None, stamp: ChangesStamp) -> int:
        """Append rows without Kafka offsets and apply them; return the number of events.

        `rows` has the changelog's columns without `cdc_ingested_at` and must be deterministic.
        `stamp` is the changelog's at the snapshot `read_from`; only its time of ingestion changes.
        Raises Fenced, as a batch does, if another writer has appended since.
        """
        facts = stats_of(self.table, rows)
        if facts.events == 0:
            return 0
        ingested_at = moment_after(stamp)
        added = self._in_log_columns(rows, ingested_at)
        append_changes(
            added,
            self.lake,
            self.table.changes,
            read_from=read_from,
            follows=stamp.ingested_through,
            stamp=replace(stamp, ingested_through=ingested_at),
        )
        batch = Batch(rows=added, facts=facts, follows=stamp.ingested_through)
        self._apply(ingested_at, batch, 0)
        return facts.events

    def accept_topic(self, topic: TopicState) -> None:
        """Commit a stamp without the offsets that the topic does not reach, or that are of another.

        The records that follow at these offsets are others than those in the changelog.
        """
        stamped, stamp = self.read_stamp()
        offsets = topic.valid(stamp.offsets_in(topic.id))
        if stamped.snapshot_id is None or offsets == stamp.offsets:
            return
        no_rows = self.lake.read(self.table.changes, stamped.snapshot_id).limit(0)
        at = moment_after(stamp)
        append_changes(
            self._in_log_columns(no_rows, at),
            self.lake,
            self.table.changes,
            read_from=stamped.snapshot_id,
            follows=stamp.ingested_through,
            stamp=replace(stamp, offsets=offsets, topic_id=topic.id, ingested_through=at),
        )

    def read_stamp(self) -> tuple[StampedSnapshot, ChangesStamp]:
        """Read the changelog's stamp; raise TableError if it has rows but no stamp."""
        stamped = self.lake.stamped(self.table.changes)
        if stamped.stamp is not None:
            return stamped, ChangesStamp.from_json(stamped.stamp)
        if stamped.snapshot_id is not None:
            raise TableError(
                self.table.name,
                f"no snapshot of its changelog {self.table.changes} has a stamp with offsets",
                "another tool has written to it or expired its snapshots: restore a snapshot with a"
                " stamp",
            )
        return stamped, ChangesStamp()

    def _fresh(self, events: DataFrame, ranges: Ranges, stamp: ChangesStamp) -> DataFrame:
        """Select the records that the changelog's stamp does not cover yet."""
        fresh = events.where(F.col("topic") == self.table.topic)
        for partition, offset in stamp.offsets_in(self.topic_id).items():
            if partition in ranges and ranges[partition][0] < offset:  # the batch is a replay
                fresh = fresh.where((F.col("partition") != partition) | (F.col("offset") >= offset))
        tasks = (
            sum(following - first for first, following in ranges.values()) // MIN_ROWS_PER_TASK + 1
        )
        return fresh.coalesce(tasks)

    def _missing_sweep(
        self, summaries: list[PartitionSummary], stamped: StampedSnapshot, replaced: Replaced
    ) -> str | None:
        """Return the position of the sweep that the changelog may lack: there are rows below it.

        Older events may also arrive after the sweep of a changelog that had nothing to sweep.
        """
        if not replaced.position:
            return None
        newest = Position.parse(replaced.position).epoch
        has_older = min(_epochs(summaries), default=newest) < newest
        if not has_older and (replaced.is_swept or not self._holds_below(stamped, replaced)):
            return None
        floor = applied_through(self.lake, self.table).floor
        return None if floor >= history_part(replaced.position) else replaced.position

    def _holds_below(self, stamped: StampedSnapshot, replaced: Replaced) -> bool:
        if stamped.snapshot_id is None:
            return False
        log_then = self.lake.read(self.table.changes, stamped.snapshot_id)
        return not log_then.where(F.col(naming.POSITION) < replaced.position).isEmpty()

    def _quarantine(self, decoded: Decoded) -> int:
        if not decoded.show(REFUSED):
            return 0
        refused = refused_records(decoded.records, decoded.rows)
        return quarantine(refused, self.lake, self.table)

    def _rows_to_append(
        self,
        decoded: Decoded,
        stamped: StampedSnapshot,
        sweep: str | None,
        ingested_at: int,
    ) -> DataFrame:
        """Select the accepted events that the changelog lacks, one per identity.

        The result is deterministic: every evaluation gives the same rows.
        """
        rows, summaries = decoded.rows.where(F.col(REFUSAL).isNull()), decoded.parts
        if may_repeat_within(summaries):
            rows = without_repeats(rows, self.table)
        if stamped.stamp and may_repeat(summaries, ChangesStamp.from_json(stamped.stamp)):
            lowest = min(p.lowest_lsn for p in summaries if p.lowest_lsn is not None)
            # The snapshot before the append: the merge evaluates this again after it.
            known = self.lake.read(self.table.changes, stamped.snapshot_id)
            rows = not_in_log(rows, known, self.table, lowest)
        if sweep:
            rows = rows.unionByName(sweep_row(rows, sweep, ingested_at))
        return self._in_log_columns(rows, ingested_at)

    def _in_log_columns(self, rows: DataFrame, ingested_at: int) -> DataFrame:
        columns = [name for name, _ in changes_schema(self.table, self.plan).columns]
        values = {naming.INGESTED_AT: ingested_at_column(ingested_at)}
        # SQL text: one call from Python to Java instead of one per column.
        return rows.selectExpr(*(values.get(name, SPARK.name(name)) for name in columns))

    def _apply(self, through: int, batch: Batch | None, quarantined: int) -> Outcome:
        """Apply, unless another job holds the lease or keeps winning; a later batch catches up."""
        events = batch.facts.events if batch else 0
        outcome = Outcome(appended=events, quarantined=quarantined, applied=True)
        if self.table.apply != "each_batch":
            return outcome
        if not self.apply_now:
            return replace(outcome, applied=False)
        started = time.monotonic()
        try:
            with self.leases.try_hold(self.table.name) as held:
                if held:
                    apply_changes(self.lake, self.table, through=through, batch=batch)
        except CommitConflict as error:
            log.warning("%s", error)
            held = False
        return replace(outcome, applied=held, applying=time.monotonic() - started)


def _epochs(summaries: list[PartitionSummary]) -> list[int]:
    return [part.lowest_epoch for part in summaries if part.lowest_epoch is not None]


def _before(ranges: Ranges, stop_offsets: Mapping[int, int]) -> Ranges:
    """Clip the ranges at the stop offsets."""
    ends = {p: min(end, stop_offsets.get(p, end)) for p, (_, end) in ranges.items()}
    return {p: (first, ends[p]) for p, (first, _) in ranges.items() if first < ends[p]}


def _records_before(events: DataFrame, stop_offsets: Mapping[int, int]) -> DataFrame:
    for partition, cut in stop_offsets.items():
        events = events.where((F.col("partition") != partition) | (F.col("offset") < cut))
    return events


def _facts(decoded: Decoded, *, sweeps: int) -> ChangeStats:
    parts = decoded.parts
    deleted = [p.lowest_deleted_lsn for p in parts if p.lowest_deleted_lsn is not None]
    return ChangeStats(
        events=sum(part.accepted for part in parts) + sweeps,
        truncates=sweeps > 0 or decoded.show(TRUNCATE),
        carried_key_changes=decoded.show(CARRIED_KEY_CHANGE),
        unavailable=frozenset(name for part in parts for name in part.unavailable),
        lowest_deleted_lsn=min(deleted, default=None),
    )


class RequestedOperations(Protocol):
    """Executor of the operations requested from the stream; the entry script supplies it."""

    def run(
        self,
        plan: Plan,
        events: DataFrame,
        ranges: Mapping[str, Ranges],
        progress: Progress,
        batch_of: Callable[[Table], TableBatch],
    ) -> None:
        """Execute the possible requests; call it after the batch's events are appended."""
