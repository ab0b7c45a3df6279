"""One poll of a table: read, keep what has changed, append, apply, remember.

A poll that is killed is repaired by the next one: it applies what was appended, then reads the same
rows again, of which those that are stored already are unchanged.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.control_objects import PollProgress, poll_error_name, poll_name
from cdclake.debezium.position import FIRST_EPOCH, POLL_PHASE
from cdclake.debezium.worker import SALT_KEY
from cdclake.errors import TableError
from cdclake.fail_points import reach
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.limit_condition import is_withheld
from cdclake.iceberg.schemas import changes_schema, quarantine_schema, state_schema
from cdclake.jobs.apply.rebuilt_state import ingested_through
from cdclake.jobs.apply.state_table import apply_changes
from cdclake.jobs.apply.state_update import StateUpdate
from cdclake.jobs.bulk_load.loaded_rows import RECORD, ReadPlace, read_events
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp, moment_after
from cdclake.jobs.iceberg.error_policy import hold_reason
from cdclake.jobs.iceberg.lake_tables import LakeTables, StampedSnapshot
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.iceberg.table_handle import TableHandle
from cdclake.jobs.operations.requested_erasure import answer_request, at_every_position
from cdclake.jobs.poll.changed_rows import changed, deletes_of_gone_rows, refuse_repeated_keys
from cdclake.jobs.poll.polled_snapshot import (
    PolledSnapshot,
    SourceLogin,
    polled_snapshot,
)
from cdclake.jobs.runtime.metrics import Metrics
from cdclake.jobs.runtime.secrets import secret_value
from cdclake.jobs.runtime.source import deployed_dsn
from cdclake.jobs.stream.append import POLL_PARTITION, append_changes
from cdclake.jobs.stream.changelog_columns import REFUSAL, event_columns
from cdclake.jobs.stream.quarantine import quarantine_rows
from cdclake.jobs.table_jobs.table_job import TableJob
from cdclake.metrics import QUARANTINED, WITHHELD
from cdclake.plan import Plan, Table
from cdclake.poll_definition import poll_definition
from cdclake.schedule_times import next_start

_SLOT_S = 4  # shorter than any poll: each has a slot, also after one that was never remembered
_SLOT_OFFSETS = 1 << 31  # more than the rows that a poll may refuse

log = logging.getLogger("cdclake.poll")


def poll_table(job: TableJob, table: Table) -> int:
    """Poll the table under its lease, after an erasure if one is requested.

    The plan is read under the lease: it may have changed while another run held the lease.
    Returns the number of rows appended. The reason of a failed poll is kept for `status` until a
    poll succeeds. A poll for a comparison, an erasure or an operator waits for another one of the
    table, as a sweep may take long. A scheduled one leaves the table to it: schedules whose runs
    wait would take all of the job's concurrent runs.
    """
    failed = poll_error_name(table.name)
    is_scheduled = job.arguments.get("run") == table.poll.run_name
    lease = job.leases.hold_in_turn(table.name, gives_way=is_scheduled)
    try:
        with deployed_dsn(job.arguments) as dsn, lease as is_held:
            if not is_held:
                log.info("%s: skipped, another run is polling it", table.name)
                return 0
            current = job.with_current_plan()
            declared = current.plan.polled_table(table.name)
            salt = job.arguments.get("mask_salt")
            login = SourceLogin(dsn=dsn, salt=secret_value(salt, SALT_KEY) if salt else "")
            erased = partial(at_every_position, table=declared, salt=login.salt)
            answer_request(current, declared, erased)
            appended = _poll_of(job, current.plan, declared).run(login)
    except Exception as error:
        job.control.write(failed, {"error": hold_reason(table.name, error) or str(error)})
        raise
    job.control.delete(failed)
    return appended


def _poll_of(job: TableJob, plan: Plan, table: Table) -> TablePoll:
    """Return the poll that the job's arguments ask for."""
    arguments = job.arguments
    return TablePoll(
        job.lake,
        plan,
        job.control,
        table,
        job.started,
        arguments["plan"],
        is_whole=arguments.get("whole") == "true",
        metrics=Metrics(arguments.get("metrics")),
    )


@dataclass(frozen=True, slots=True)
class TablePoll:
    """Poll of one table; the caller holds its lease."""

    lake: LakeTables
    plan: Plan
    control: ObjectStore
    table: Table
    started: float = field(default_factory=time.time)  # seconds since 1970; of the job's run
    plan_uri: str = ""
    is_whole: bool = False  # read every row, also those that were not written since the last poll
    metrics: Metrics = field(default_factory=partial(Metrics, None))

    def run(self, login: SourceLogin) -> int:
        """Poll once; return the number of rows appended.

        Does nothing if a run with a newer plan has polled the table under another declaration:
        columns that this plan lacks would be renamed as dropped ones. Raises TableError, with
        nothing appended, if two rows have the same key, or if more than `stop_table_after` rows
        cannot be stored.
        """
        stored = self.control.read(poll_name(self.table.name))
        before = None if stored is None else PollProgress.from_json(stored.content)
        if before is not None and self._is_out_of_date(before):
            log.warning("%s: a run with a newer plan has polled it", self.table.name)
            return 0
        for schema in (changes_schema, state_schema):
            self.lake.create(schema(self.table, self.plan))
        self.lake.create(quarantine_schema(self.plan))
        self._apply()
        taken = polled_snapshot(
            self.lake.spark, login, self.table, needs_lsn=bool(self.plan.tables)
        )
        with taken as snapshot:
            stamped = self.lake.stamped(self.table.changes)
            epoch = self._epoch(_stamp_of(stamped))
            since = self._since(before, snapshot, epoch)
            progress = self._progress(before, snapshot, since, _stamp_of(stamped), epoch)
            appended, refused = self._append(snapshot, progress, since, stamped)
        self._apply()
        ingested = ingested_through(self.lake, self.table)
        progress = replace(progress, refused=refused, ingested=ingested)
        reach("before_poll_progress")
        self.control.write(poll_name(self.table.name), progress.to_json())
        log.info("%s: %d rows appended, %d refused", self.table.name, appended, refused)
        return appended

    def _is_out_of_date(self, before: PollProgress) -> bool:
        """Check whether this run's plan may be older than the last poll's: runs may overlap.

        The local lake replaces its plan, and each poll reads it under the lease: the last one has
        the newest. A deployment has a new file for a new plan, and a run keeps that of its start.
        """
        return (
            before.run_plan != self.plan_uri
            and before.run_started > self.started
            and before.definition != self._definition
        )

    def _apply(self) -> None:
        through = ingested_through(self.lake, self.table)
        apply_changes(StateUpdate(self.lake, self.table), through=through)

    def _epoch(self, stamp: ChangesStamp) -> int:
        """Return the epoch of the rows that this poll appends."""
        return max(Progress.load(self.control).epoch, stamp.epoch, FIRST_EPOCH)

    def _since(
        self, before: PollProgress | None, snapshot: PolledSnapshot, epoch: int
    ) -> int | None:
        """Return the time since which rows are read, in microseconds; None if all are.

        All are also read if another writer was there (the stream, while the table's changes came
        from the WAL), if the declaration has changed, or if the source's clock was set back. After
        a new epoch or a WAL that went back, the source may be a restored one: its rows are older
        than the last poll, and may differ from those in the lake.
        """
        continues = (
            before is not None
            and not self.is_whole
            and before.epoch == epoch
            and (not snapshot.primary_lsn or before.source_lsn <= snapshot.primary_lsn)
            and before.ingested == ingested_through(self.lake, self.table)
            and before.definition == self._definition
            and before.read_at <= snapshot.read_at
            and not self._is_sweep_due(before, snapshot)
        )
        return before.bound if before is not None and continues else None

    def _progress(
        self,
        before: PollProgress | None,
        snapshot: PolledSnapshot,
        since: int | None,
        stamp: ChangesStamp,
        epoch: int,
    ) -> PollProgress:
        """Return the progress that this poll reaches."""
        last = before or PollProgress()
        # The poll that appended it may have died before it was remembered.
        appended = stamp.lsn_marks.get(POLL_PARTITION, 0) if stamp.epoch == epoch else 0
        polled = last.lsn if last.epoch == epoch else 0
        unknown = 0 if since is None else since  # such as while a prepared transaction waits
        return PollProgress(
            read_at=snapshot.read_at,
            swept_at=snapshot.read_at if since is None else last.swept_at,
            bound=unknown if snapshot.bound is None else snapshot.bound,
            # Rows of a later poll win, whatever the LSN. Those of a new epoch do in any case: the
            # LSNs of its source, which changes from the WAL have, may be lower.
            lsn=max(snapshot.lsn, polled + 1, appended + 1),
            source_lsn=snapshot.primary_lsn,
            epoch=epoch,
            slot=max(int(time.time()) // _SLOT_S, last.slot + 1),
            definition=self._definition,
            run_started=self.started,
            run_plan=self.plan_uri,
        )

    @property
    def _definition(self) -> str:
        return poll_definition(self.plan, self.table)

    def _is_sweep_due(self, before: PollProgress, snapshot: PolledSnapshot) -> bool:
        if self.table.poll.deletes == "none":
            return False
        if not self.table.poll.sweep_every:
            return True
        last = datetime.fromtimestamp(before.swept_at / 1_000_000, UTC)
        due = next_start(self.table.poll.sweep_every, last)
        return due is not None and due.timestamp() * 1_000_000 <= snapshot.read_at

    def _append(
        self,
        snapshot: PolledSnapshot,
        progress: PollProgress,
        since: int | None,
        stamped: StampedSnapshot,
    ) -> tuple[int, int]:
        """Append what has changed; return the numbers of rows appended and refused."""
        place = ReadPlace(
            epoch=progress.epoch,
            prev_commit_lsn=progress.lsn,
            phase=POLL_PHASE,
            lsn=progress.lsn,
            partition=POLL_PARTITION,
            read_at=progress.read_at,
        )
        # From 1: the deletes of a poll are at 0.
        rows, offset = snapshot.rows(since), F.monotonically_increasing_id() + 1
        with persisted(read_events(rows, offset, self.table, self.plan, place)) as events:
            refused = self._quarantine(events, progress.slot)  # its count reads and caches all rows
            snapshot.end()
            with persisted(self._changes(events, place, since)) as changes:
                appended = changes.count()
                if appended:
                    self._commit(changes, stamped, place)
        return appended, refused

    def _changes(self, events: DataFrame, place: ReadPlace, since: int | None) -> DataFrame:
        accepted = events.where(F.col(REFUSAL).isNull())
        refuse_repeated_keys(accepted, self.table)
        columns = event_columns(self.table)
        live = self.lake.read(self.table.name).where(~F.col(naming.DELETED))
        fresh = changed(accepted, self.table, self._stored_since(live, since))
        if since is not None or self.table.poll.deletes == "none":
            return fresh.select(*columns)
        # Refused rows are in the source, too.
        log = self.lake.read(self.table.changes)
        gone = deletes_of_gone_rows(events, self.table, live, log, str(place.start))
        return fresh.select(*columns).unionByName(gone.select(*columns))

    def _stored_since(self, live: DataFrame, since: int | None) -> DataFrame:
        """Return the state's rows that may equal one of those read: unchanged, so is their time."""
        if since is None:
            return live
        by = SPARK.name(self.table.poll.by)
        day_before = since - 86_400_000_000  # a time without zone is that of a zone
        return live.where(f"{by} >= {SPARK.instant(day_before)} OR {by} IS NULL")

    def _quarantine(self, events: DataFrame, slot: int) -> int:
        """Quarantine refused rows, unless an earlier poll has found the same; return how many.

        The quarantine tells records apart by their offsets, so each poll has others.
        """
        refused = events.where(F.col(REFUSAL).isNotNull())
        count = refused.count()
        faults = refused.where(f"NOT {is_withheld(REFUSAL)}")
        limit = self.plan.stop_table_after
        unstorable = faults.count() if count > limit else 0
        if unstorable > limit:
            reason = faults.first()
            assert reason is not None
            raise TableError(
                self.table.name,
                f"{unstorable} rows of {self.table.source} cannot be stored, more than"
                f" stop_table_after={limit}: {reason[REFUSAL]}",
                "correct them, or exclude the column; nothing of this poll was stored",
            )
        if count:
            known = self.lake.read(naming.QUARANTINE).where(F.col("table") == self.table.name)
            same = refused.alias("new").join(
                known.alias("known"),
                (F.col(f"new.{RECORD['key']}") == F.col("known.key"))
                & _row_of(f"new.{RECORD['value']}").eqNullSafe(_row_of("known.value")),
                "left_anti",
            )
            number = F.row_number().over(Window.orderBy(naming.OFFSET))
            numbered = same.withColumn(naming.OFFSET, number + F.lit(slot * _SLOT_OFFSETS))
            new = quarantine_rows(numbered, RECORD, self.lake, self.table)
            self.metrics.publish(
                lambda: {QUARANTINED: new.added - new.withheld, WITHHELD: new.withheld}
            )
        return count

    def _commit(self, changes: DataFrame, stamped: StampedSnapshot, place: ReadPlace) -> None:
        before = _stamp_of(stamped)
        ingested_at = moment_after(before)
        moment = F.timestamp_micros(F.lit(ingested_at))
        names = [SPARK.name(name) for name, _ in changes_schema(self.table, self.plan).columns]
        append_changes(
            changes.withColumn(naming.INGESTED_AT, moment).select(*names),
            TableHandle(self.lake, self.table.changes),
            read_from=stamped.snapshot_id,
            follows=before.ingested_through,
            stamp=replace(
                before,
                ingested_through=ingested_at,
                epoch=place.epoch,
                lsn_marks=_marks(before, place),
            ),
        )


def _stamp_of(stamped: StampedSnapshot) -> ChangesStamp:
    return ChangesStamp.from_json(stamped.stamp) if stamped.stamp else ChangesStamp()


def _marks(before: ChangesStamp, place: ReadPlace) -> dict[int, int]:
    """Return the marks after a poll; those of an earlier epoch are LSNs of another history."""
    kept = before.lsn_marks if before.epoch == place.epoch else {}
    return {**kept, POLL_PARTITION: place.lsn}


def _row_of(record: str) -> Expression:
    """Return the row in the bytes of a refused record, without where it was read."""
    return F.get_json_object(F.col(record).cast("string"), "$.after")
