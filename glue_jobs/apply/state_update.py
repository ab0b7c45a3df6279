"""Update of one state: what it lacks, and the commit of what a task has written for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake.errors import TaskFailed
from cdclake.iceberg.latest_row import Carried
from cdclake.iceberg.merge import above_truncates, merge_changes
from cdclake.iceberg.views import AppliedThrough
from cdclake.jobs.apply.newest_events import newest_events
from cdclake.jobs.apply.pending_changes import (
    MAX_DECODED_BYTES,
    MAX_EVENTS,
    TooLarge,
    may_hold_lsn,
    next_pending,
)
from cdclake.jobs.apply.pending_facts import PendingFacts
from cdclake.jobs.apply.pending_facts_query import facts_of_rows
from cdclake.jobs.apply.state_job import Answer, StateRequest, update_by_rows
from cdclake.jobs.apply.state_task import StateTarget, carried_columns
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp, state_stamp, state_stamp_json
from cdclake.jobs.iceberg.data_file import Delta
from cdclake.jobs.iceberg.delta_handle import DeltaHandle
from cdclake.jobs.iceberg.events_of_keys import compared_keys
from cdclake.jobs.iceberg.lake_tables import LakeTables, StampedSnapshot
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.iceberg.table_handle import TableHandle
from cdclake.jobs.iceberg.views import viewed
from cdclake.naming import is_dropped_column
from cdclake.plan import Table


class StateUpdate:
    """One state and its changelog, as last loaded."""

    def __init__(
        self, lake: LakeTables, table: Table, *, changelog: TableHandle | None = None
    ) -> None:
        self.lake, self.table = lake, table
        self._state = DeltaHandle(lake, table.name)
        self._changelog = changelog or TableHandle(lake, table.changes)

    def applied(self) -> AppliedThrough:
        """Return how far the state is applied, from its newest stamp."""
        stamp = self.stamped().stamp
        return state_stamp(stamp) if stamp else AppliedThrough()

    def stamped(self) -> StampedSnapshot:
        """Return the state's current snapshot and its newest stamp."""
        return self._state.stamped()

    def forget(self) -> None:
        """Load both tables again before their next use."""
        self._state.forget()
        self._changelog.forget()

    def request(self, through: int) -> StateRequest | None:
        """Return the next part of the job for changes up to `through`; None if there is none."""
        applied = self.applied()
        if applied.ingested >= through:
            return None
        self._see_changelog(through)
        pending = next_pending(self._changelog, after=applied.ingested, through=through)
        return StateRequest(applied, self._target(applied), pending)

    def _see_changelog(self, through: int) -> None:
        """Load the changelog again if the rows up to `through` are newer than its last snapshot.

        Raises RuntimeError if there are none: the state would pass for one that has them.
        """
        if self._ingested_through() < through:
            self._changelog.forget()
        if self._ingested_through() < through:
            raise RuntimeError(f"{self._changelog.name} has no rows ingested at {through}")

    def _ingested_through(self) -> int:
        stamp = self._changelog.stamped().stamp
        return 0 if stamp is None else ChangesStamp.from_json(stamp).ingested_through

    def is_for_task(self, request: StateRequest) -> bool:
        """Return whether a task can hold the changes, and the state's format takes its files."""
        return request.pending.fits_task and self._state.takes_deltas

    def commit(self, request: StateRequest, written: Answer) -> int | None:
        """Commit what a task has written for the request; return the number of events.

        Returns None, with nothing committed, if the changes need more than an update of rows.
        """
        if isinstance(written, TaskFailed):
            raise written
        if isinstance(written, TooLarge):
            return None
        applied, facts = request.applied, written.facts
        if facts.truncates or facts.carried_key_changes or self.may_wait(facts, applied):
            return None
        newest = max(applied.newest, facts.highest)
        until = AppliedThrough(
            request.pending.through,
            applied.floor,
            tuple(written.carried),
            newest,
            rebuilt=applied.rebuilt,
        )
        self._commit(written.delta, until, request.target.snapshot_id)
        return facts.events

    def waiting_from(self, facts: PendingFacts, applied: AppliedThrough) -> int | None:
        """Return the lowest LSN of applied creations that may wait for a value of these changes.

        The two keys of a change may be in different partitions, and one may lag. An earlier value
        may come from quarantine. None: no creation waits.
        """
        if not applied.lacked(self.table):
            return None
        is_late = bool(facts.lowest) and facts.lowest <= applied.newest
        return facts.lowest_lsn if is_late else facts.lowest_deleted_lsn

    def may_wait(self, facts: PendingFacts, applied: AppliedThrough) -> bool:
        """Return whether the changelog may have such a creation; reads no rows."""
        lowest = self.waiting_from(facts, applied)
        through = applied.ingested
        return lowest is not None and may_hold_lsn(
            self._changelog, from_lsn=lowest, through=through
        )

    def merge_rows(
        self,
        pending: DataFrame,
        facts: PendingFacts,
        applied: AppliedThrough,
        until: AppliedThrough,
    ) -> AppliedThrough:
        """Bring rows that Spark has, those above the floor of `until`, into the state.

        Returns the stamp. If there are more rows than a task holds, those that the state needs are
        divided by their keys into several commits. Only the last one has that stamp, so a crash
        between them repeats them.
        """
        carried = carried_columns(self.table, {*applied.carried, *facts.unavailable})
        done = replace(until, carried=carried, newest=max(applied.newest, facts.highest))
        rows = pending.where(above_truncates(self.table, until.floor))
        if not self._state.takes_deltas:
            self._merge_by_statement(rows, done)
            return done
        with self._divided(rows, _tasks_of(facts), carried) as parts:
            for number, part in enumerate(parts, 1):
                target = replace(self._target(applied), floor=until.floor, carried=carried)
                written = update_by_rows(part, target, self._changelog.target().schema)
                stamp = done if number == len(parts) else replace(applied, carried=carried)
                self._commit(written.delta, stamp, target.snapshot_id)
        return done

    def commit_stamp(self, until: AppliedThrough) -> None:
        """Commit a stamp without rows."""
        self._commit(Delta(), until, self._state.live().snapshot_id)

    @contextmanager
    def _divided(self, rows: DataFrame, tasks: int, carried: Carried) -> Iterator[list[DataFrame]]:
        """Divide rows that need several tasks.

        A key's events stay together, so those that the fold would drop are left out first: the
        events of a single key may be more than a task holds.
        """
        if tasks == 1:
            yield [rows]
            return
        with persisted(newest_events(rows, self.table, carried)) as newest:
            parts = _tasks_of(facts_of_rows(newest))
            code = F.hash(*compared_keys(self.table))
            yield [newest.where(F.pmod(code, F.lit(parts)) == part) for part in range(parts)]

    def _merge_by_statement(self, rows: DataFrame, done: AppliedThrough) -> None:
        """Run MERGE, for a format without position delete files."""
        lake, table = self.lake, self.table
        dropped = [each for each in lake.read(table.name).columns if is_dropped_column(each)]
        with viewed(rows) as changes:
            statement = merge_changes(
                table, lake.database, changes, done.carried, done.floor, dropped
            )

            def run() -> None:
                lake.spark.sql(statement)

            lake.run_stamped(state_stamp_json(done), run)
        self.forget()

    def _target(self, applied: AppliedThrough) -> StateTarget:
        live = self._state.live()
        return StateTarget(
            table=self.table,
            file=self._state.target(),
            snapshot_id=live.snapshot_id,
            data_files=live.data_files,
            delete_files=live.delete_files,
            carried=applied.carried,
            newest=applied.newest,
            floor=applied.floor,
        )

    def _commit(self, delta: Delta, until: AppliedThrough, read_from: int | None) -> None:
        self._state.commit_delta(delta, read_from=read_from, stamp=state_stamp_json(until))


def _tasks_of(facts: PendingFacts) -> int:
    """Return how many tasks hold the changes."""
    return max(-(-facts.events // MAX_EVENTS), -(-facts.text_bytes // MAX_DECODED_BYTES), 1)
