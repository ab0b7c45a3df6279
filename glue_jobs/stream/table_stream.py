"""One table of the stream: its part of a batch becomes one commit to its changelog, then its state.

The files were written by the batch's job (`changelog_job`). Here the driver judges by their
summaries whether they may be committed as they are: after drift, repeats or a new snapshot some of
the rows are read again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.debezium.position import Position, history_part
from cdclake.erasures import ErasedKeys
from cdclake.errors import CommitConflict, TableError
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.schemas import changes_schema
from cdclake.jobs.apply.rebuilt_state import applied_through
from cdclake.jobs.apply.state_table import apply_changes
from cdclake.jobs.apply.state_update import StateUpdate
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.control.table_life import Resuming
from cdclake.jobs.control.table_progress import NewlyRefused, TableProgress
from cdclake.jobs.control.topic_state import TopicState
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp, moment_after
from cdclake.jobs.iceberg.lake_tables import LakeTables, StampedSnapshot
from cdclake.jobs.iceberg.table_handle import TableHandle
from cdclake.jobs.iceberg.task_failures import failure_of, traceback_of
from cdclake.jobs.stream.append import (
    append_changes,
    commit_files,
    ingested_at_column,
    next_stamp,
    sweep_row,
)
from cdclake.jobs.stream.changelog_job import Ranges, TableShare, run_changelog_job
from cdclake.jobs.stream.changelog_task import TableTarget
from cdclake.jobs.stream.deduplicate import (
    has_repeats,
    may_repeat,
    may_repeat_within,
    not_in_log,
    without_repeats,
)
from cdclake.jobs.stream.erased_events import SharedErasedKeys
from cdclake.jobs.stream.event_decoder import EventDecoder
from cdclake.jobs.stream.partition_summary import REFUSED, PartitionSummary, RefusedReasons
from cdclake.jobs.stream.quarantine import newly_refused, quarantine_files
from cdclake.jobs.stream.row_files import read_rows, write_rows
from cdclake.jobs.stream.schema_drift import Drift, KnownColumns, find_drift
from cdclake.jobs.stream.table_schedule import TableSchedule
from cdclake.plan import Plan, Table

log = logging.getLogger("cdclake.stream")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of a table's part of a batch; the refused events are those that it has counted."""

    appended: int
    quarantined: int  # without the events that a rule withholds
    withheld: int = 0
    drift: Drift | None = None  # None: nothing was decoded
    taken: Mapping[int, int] = field(default_factory=dict)  # partition -> next offset
    reasons: RefusedReasons = field(default_factory=RefusedReasons)


@dataclass(frozen=True, slots=True)
class Replaced:
    """Rows that a complete snapshot has replaced: those below its position."""

    position: str = ""  # "": no snapshot is known to be complete
    is_swept: bool = True  # known: they are gone


@dataclass(frozen=True, slots=True)
class ChangelogState:
    """The changelog as it was before a batch: its snapshot and its stamp."""

    stamped: StampedSnapshot
    stamp: ChangesStamp
    ingested_at: int  # time of ingestion of the rows that follow, in microseconds


@dataclass(frozen=True, slots=True)
class Portion:
    """A table's records in a batch, and the files that were written for them."""

    records: DataFrame
    ranges: Ranges
    share: TableShare
    changelog: ChangelogState  # as the files were written for it


@dataclass(slots=True, kw_only=True)
class TableStream:
    """One table of the stream, and what is known of it between batches."""

    lake: LakeTables
    plan: Plan
    table: Table
    leases: Leases
    place: TableProgress
    handle: TableHandle = field(init=False)  # of the changelog
    update: StateUpdate = field(init=False)
    is_created: bool = False  # set by StreamTables: changelog and state exist as planned
    schedule: TableSchedule = field(default_factory=TableSchedule)
    through: int = 0  # time of ingestion that the changelog has reached, in microseconds
    erased: ErasedKeys | None = None  # whose older events this batch drops
    shared: SharedErasedKeys | None = field(init=False)  # the same keys
    # Called before a commit whose replay would not find these: columns that were seen for the
    # first time, reasons to stop, and numbers of refused events.
    remember: Callable[[KnownColumns], None] = lambda known: None
    remember_refused: Callable[[RefusedReasons], None] = lambda reasons: None
    remember_quarantined: Callable[[NewlyRefused], None] = lambda refused: None

    def __post_init__(self) -> None:
        self.handle = TableHandle(self.lake, self.table.changes)
        self.update = StateUpdate(self.lake, self.table, changelog=self.handle)
        self.drop_events_of(self.erased)

    def drop_events_of(self, erased: ErasedKeys | None) -> None:
        """Drop older events of these keys from now on."""
        self.erased, self.shared = erased, None
        if erased is not None:
            self.shared = SharedErasedKeys.of(erased, self.lake.spark.sparkContext)

    def run(
        self, records: DataFrame, ranges: Ranges, *, epoch: int, replaced: Replaced = Replaced()
    ) -> Outcome:
        """Append the records of the table's topic in `ranges` by a job for this table alone."""
        changelog = self.read_changelog()
        records = records.where(F.col("topic") == self.table.topic)
        share = TableShare()
        if ranges:
            targets = {self.table.topic: self.target(changelog)}
            quarantine = TableHandle(self.lake, naming.QUARANTINE).target()
            batch = run_changelog_job(records, self.plan, targets, quarantine)
            share = batch.shares.get(self.table.topic, share)
        portion = Portion(records, ranges, share, changelog)
        return self.append(portion, epoch=epoch, replaced=replaced)

    def append(self, portion: Portion, *, epoch: int, replaced: Replaced = Replaced()) -> Outcome:
        """Commit a portion to the changelog; a replay is idempotent.

        `epoch` is the newest seen in the whole stream. If the outcome's drift has stop offsets,
        only the records before them were processed, and replaced rows are not swept.
        """
        if not portion.ranges and replaced.is_swept:
            return Outcome(appended=0, quarantined=0)
        if portion.share.error is not None:
            named, failed = {"table": self.table.name}, portion.share.error
            log.error("table %s: %s", self.table.name, traceback_of(failed), extra=named)
            raise failure_of(failed)
        known = KnownColumns(first_seen=self.place.first_seen, suspected=self.place.suspected)
        parts = portion.share.parts
        drift = find_drift(self.table, parts, known, lambda: self._decoded(portion))
        if drift.known.first_seen != known.first_seen:
            self.remember(drift.known)
        if drift.stop_offsets:
            before = _before(portion.ranges, drift.stop_offsets)
            records = _records_before(portion.records, drift.stop_offsets)
            return replace(self.run(records, before, epoch=epoch), drift=drift)
        reasons = RefusedReasons.of(parts)
        if reasons != RefusedReasons():
            self.remember_refused(reasons)
        outcome = self._ingest(portion, epoch, replaced)
        taken = {partition: end for partition, (_, end) in portion.ranges.items()}
        return replace(outcome, drift=drift, taken=taken, reasons=reasons)

    def apply(self) -> bool:
        """Apply the changelog as last read or written; return whether the state has it all.

        That fails if another job holds the lease or keeps winning: a later batch catches up.
        """
        if self.table.apply != "each_batch":
            return True
        try:
            with self.leases.try_hold(self.table.name) as held:
                if held:
                    apply_changes(self.update, through=self.through)
        except CommitConflict as error:
            log.warning("%s", error)
            return False
        return held

    def add(self, rows: DataFrame, *, read_from: int | None, stamp: ChangesStamp) -> int:
        """Append rows without Kafka offsets and apply them; return the number of events.

        `rows` has the changelog's columns without `cdc_ingested_at` and must be deterministic.
        `stamp` is the changelog's at the snapshot `read_from`; only its time of ingestion changes.
        Raises Fenced, as a batch does, if another writer has appended since.
        """
        events = rows.count()
        if events == 0:
            return 0
        ingested_at = moment_after(stamp)
        append_changes(
            self._in_log_columns(rows, ingested_at),
            self.handle,
            read_from=read_from,
            follows=stamp.ingested_through,
            stamp=replace(stamp, ingested_through=ingested_at),
        )
        self.through = ingested_at
        self.apply()
        return events

    def accept_topic(self, topic: TopicState) -> None:
        """Commit a stamp without the offsets that the topic does not reach, or that are of another.

        The records that follow at these offsets are others than those in the changelog.
        """
        changelog = self.read_changelog()
        stamp, snapshot = changelog.stamp, changelog.stamped.snapshot_id
        offsets = topic.valid(stamp.offsets_in(topic.id))
        if snapshot is None or offsets == stamp.offsets:
            return
        at = changelog.ingested_at
        accepted = replace(stamp, offsets=offsets, topic_id=topic.id, ingested_through=at)
        self._commit([], changelog, accepted)

    def read_changelog(self) -> ChangelogState:
        """Read the changelog's stamp; raise TableError if it has rows but no stamp."""
        stamped = self.handle.stamped()
        if stamped.stamp is not None:
            stamp = ChangesStamp.from_json(stamped.stamp)
            self.through = stamp.ingested_through
            return ChangelogState(stamped, stamp, moment_after(stamp))
        if stamped.snapshot_id is not None:
            raise TableError(
                self.table.name,
                f"no snapshot of its changelog {self.table.changes} has a stamp with offsets",
                "another tool has written to it or expired its snapshots: restore a snapshot with a"
                " stamp",
            )
        return ChangelogState(stamped, ChangesStamp(), moment_after(ChangesStamp()))

    def load_again(self) -> None:
        """Load changelog and state again before their next use, after commits by statements."""
        self.update.forget()

    def take_offsets(self, stamp: ChangesStamp) -> None:
        """Restore the offsets of a lost progress, so that gaps are still detected."""
        self.place.offsets, self.place.topic_id = dict(stamp.offsets), stamp.topic_id

    def target(self, changelog: ChangelogState) -> TableTarget:
        """Return what a job needs to write files that may follow this state of the changelog."""
        return TableTarget(
            file=self.handle.target(),
            ingested_at=changelog.ingested_at,
            taken=changelog.stamp.offsets_in(self.place.topic_id),
            accepts_refused=isinstance(self.place.life, Resuming),
            erased=self.shared,
        )

    def _decoded(self, portion: Portion) -> DataFrame:
        """Decode the portion's records that the changelog lacks, refused ones among them."""
        taken = portion.changelog.stamp.offsets_in(self.place.topic_id)
        records = portion.records.where(F.col("topic") == self.table.topic)
        for partition, offset in taken.items():
            if partition in portion.ranges and portion.ranges[partition][0] < offset:  # a replay
                is_other = F.col("partition") != partition
                records = records.where(is_other | (F.col("offset") >= offset))
        return EventDecoder(self.table, self.plan).decode(records)

    def _ingest(self, portion: Portion, epoch: int, replaced: Replaced) -> Outcome:
        """Quarantine refused events and commit the others."""
        changelog, parts = portion.changelog, portion.share.parts
        share = portion.share
        new = self._quarantine(share) if share.has(REFUSED) else NewlyRefused()
        refused = Outcome(appended=0, quarantined=new.quarantined, withheld=new.withheld)
        # The first snapshot's rows arrive before the first heartbeat, which carries the epoch.
        epoch = max(epoch, changelog.stamp.epoch) or min(_epochs(parts), default=0)
        sweep = self._missing_sweep(parts, changelog.stamped, replaced)
        events = sum(part.accepted for part in parts) + (1 if sweep else 0)
        if events == 0:
            return refused
        files = self._files_without_repeats(portion)
        if sweep:
            swept = sweep_row(self._no_rows(), sweep, changelog.ingested_at)
            files = [*files, *self._write(swept, changelog)]
        following = next_stamp(
            changelog.stamp,
            parts,
            epoch=epoch,
            ingested_at=changelog.ingested_at,
            topic_id=self.place.topic_id,
        )
        if files:  # else all of them were copies, and are found to be so again
            self._commit(files, changelog, following)
        return replace(refused, appended=events)

    def _commit(self, files: Sequence[str], changelog: ChangelogState, stamp: ChangesStamp) -> None:
        commit_files(
            files,
            self.handle,
            read_from=changelog.stamped.snapshot_id,
            follows=changelog.stamp.ingested_through,
            stamp=stamp,
        )
        self.through = stamp.ingested_through

    def _quarantine(self, share: TableShare) -> NewlyRefused:
        parts = [part for part in share.parts if part.has(REFUSED)]
        first = min(part.first_offset for part in parts)
        following = max(part.next_offset for part in parts)
        found = NewlyRefused()

        def count(lacking: Sequence[str]) -> None:
            nonlocal found
            found = newly_refused(lacking, share, self.place.counted, self.lake)
            self.remember_quarantined(found)

        offsets = (first, following - 1)
        quarantine_files(share.refused, offsets, self.lake, self.table, announce=count)
        return found

    def _files_without_repeats(self, portion: Portion) -> Sequence[str]:
        """Return files with the events that the changelog lacks, one per identity.

        They are the files that the job has written, unless an event may be there twice.
        """
        changelog, share = portion.changelog, portion.share
        repeats_within = may_repeat_within(share.parts)
        repeats = bool(changelog.stamped.stamp) and may_repeat(share.parts, changelog.stamp)
        if not (repeats_within or repeats):
            return share.files
        rows = read_rows(share.files, self.handle.target(), self._no_rows())
        repeats_within = repeats_within and has_repeats(rows, self.table)
        if not (repeats_within or repeats):
            return share.files
        if repeats_within:
            rows = without_repeats(rows, self.table)
        if repeats:
            lowest = min(p.lowest_lsn for p in share.parts if p.lowest_lsn is not None)
            # The snapshot before the append: the merge evaluates this again after it.
            known = self.lake.read(self.table.changes, changelog.stamped.snapshot_id)
            rows = not_in_log(rows, known, self.table, lowest)
        return self._write(rows, changelog)

    def _write(self, rows: DataFrame, changelog: ChangelogState) -> Sequence[str]:
        return write_rows(self._in_log_columns(rows, changelog.ingested_at), self.handle.target())

    def _no_rows(self) -> DataFrame:
        return self.lake.read(self.table.changes).limit(0)

    def _missing_sweep(
        self, parts: Sequence[PartitionSummary], stamped: StampedSnapshot, replaced: Replaced
    ) -> str | None:
        """Return the position of the sweep that the changelog may lack: there are rows below it.

        Older events may also arrive after the sweep of a changelog that had nothing to sweep.
        """
        if not replaced.position:
            return None
        newest = Position.parse(replaced.position).epoch
        has_older = min(_epochs(parts), default=newest) < newest
        if not has_older and (replaced.is_swept or not self._holds_below(stamped, replaced)):
            return None
        floor = applied_through(self.lake, self.table).floor
        return None if floor >= history_part(replaced.position) else replaced.position

    def _holds_below(self, stamped: StampedSnapshot, replaced: Replaced) -> bool:
        if stamped.snapshot_id is None:
            return False
        log_then = self.lake.read(self.table.changes, stamped.snapshot_id)
        return not log_then.where(F.col(naming.POSITION) < replaced.position).isEmpty()

    def _in_log_columns(self, rows: DataFrame, ingested_at: int) -> DataFrame:
        columns = [name for name, _ in changes_schema(self.table, self.plan).columns]
        values = {naming.INGESTED_AT: ingested_at_column(ingested_at)}
        # SQL text: one call from Python to Java instead of one per column.
        return rows.selectExpr(*(values.get(name, SPARK.name(name)) for name in columns))


def _epochs(parts: Sequence[PartitionSummary]) -> list[int]:
    return [part.lowest_epoch for part in parts if part.lowest_epoch is not None]


def _before(ranges: Ranges, stop_offsets: Mapping[int, int]) -> Ranges:
    """Clip the ranges at the stop offsets."""
    ends = {p: min(end, stop_offsets.get(p, end)) for p, (_, end) in ranges.items()}
    return {p: (first, ends[p]) for p, (first, _) in ranges.items() if first < ends[p]}


def _records_before(records: DataFrame, stop_offsets: Mapping[int, int]) -> DataFrame:
    for partition, stop in stop_offsets.items():
        records = records.where((F.col("partition") != partition) | (F.col("offset") < stop))
    return records
