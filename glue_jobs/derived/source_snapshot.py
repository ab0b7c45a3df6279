"""Source table of a derived table, at one point in time, and its changes since another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.control_objects import SourceProgress
from cdclake.derived_table import DerivedTable
from cdclake.errors import InputError
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.tail_facts import TailFacts, may_lack_values, tail_facts, view_over_tail
from cdclake.iceberg.views import AppliedThrough, history_view
from cdclake.jobs.apply.changelog_commits import commits_since, committed_sequence, may_lack_deletes
from cdclake.jobs.apply.key_changes import with_completed_creations
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp, state_stamp
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.plan import Plan, Table

# Temporary views.
_STATE, _CHANGES, _CHANGED = "cdc__state_of_{}", "cdc__changes_of_{}", "cdc__changed_since_of_{}"


@dataclass(frozen=True, slots=True)
class SourceSnapshot:
    """Relations of a source table over one pinned snapshot of its state and of its changelog."""

    lake: LakeTables
    table: Table
    progress: SourceProgress  # every change up to it is in the relations; later ones may be
    may_lack: bool  # an event of the changelog may lack a value
    differing: tuple[str, ...]  # columns that are not stored as declared, with their types

    def changed_keys(self, since: SourceProgress) -> DataFrame | None:
        """Return the distinct keys of the changes since then, with the state's types.

        None if a truncate or a new snapshot of the source has removed rows without an event for
        each, a rebuild may have changed rows, or a collapse has removed events since. `progress`
        without a change gives no rows.
        """
        # First, since these move without a commit by Firehose.
        if self.progress.floor != since.floor:
            return None
        if self.progress.rebuilt != since.rebuilt:
            return None
        if may_lack_deletes(self.lake, self.table, since.through):
            return None
        after = self._ingested_after(since)
        if after is None:
            history = self.lake.spark.table(naming.history_name(self.table.name))
            return history.select(*self.table.key).limit(0)
        changes = self._changes_after(after)
        if not changes.where(F.col(naming.OP) == "t").isEmpty():
            return None
        return changes.select(*self.table.key).distinct()

    def _changes_after(self, ingested: int) -> DataFrame:
        """Return the changes ingested after it, and the creations whose rows they have changed."""
        log = self.lake.spark.table(self.table.changes)
        since = log.where(f"{naming.INGESTED_AT} > {SPARK.instant(ingested)}")
        view = _CHANGED.format(self.table.name)
        changes = with_completed_creations(since, log) if self.may_lack else since
        changes.createOrReplaceTempView(view)
        return self.lake.spark.sql(history_view(self.table, changes=view, dialect=SPARK))

    def _ingested_after(self, since: SourceProgress) -> int | None:
        """Return a time before the ingestion of every change since then; None without a change."""
        if self.progress == since:
            return None
        if self.table.delivery != "firehose":
            return since.through
        return commits_since(self.lake, self.table, since.through).after


def definition_of(plan: Plan, table: DerivedTable, sources: Sequence[SourceSnapshot]) -> str:
    """Return what the table's rows are computed by: query, declared columns, and differing types.

    A plan may declare wider types before the stream has widened its tables. What is computed
    before cannot hold the values that come after.
    """
    return " ".join([plan.definition_of(table), *(d for each in sources for d in each.differing)])


def open_source(lake: LakeTables, table: Table) -> SourceSnapshot:
    """Create the temporary views `<t>_current`, `<t>_history` and `<t>_changes` of a table.

    The state is read before the changelog, so that the changelog contains at least the changes
    that the state has applied. Raises InputError if the session's time zone is not UTC: the views
    compute times in UTC.
    """
    _check_time_zone(lake, table)
    state = lake.stamped(table.name)
    applied = state_stamp(state.stamp) if state.stamp else AppliedThrough()
    through = _sequence_or_none(lake, table)
    log = lake.stamped(table.changes)
    if through is None:
        through = ChangesStamp.from_json(log.stamp).ingested_through if log.stamp else 0
        has_tail = applied.ingested < through
    else:
        after = commits_since(lake, table, applied.sequence).after
        has_tail = after is not None
        applied = applied if after is None else replace(applied, ingested=after)
    stored, changes = _STATE.format(table.name), _CHANGES.format(table.name)
    rows = lake.read(table.name, state.snapshot_id)
    events = lake.read(table.changes, log.snapshot_id)
    rows.createOrReplaceTempView(stored)
    events.createOrReplaceTempView(changes)
    lake.spark.table(changes).createOrReplaceTempView(table.changes)
    found = TailFacts()
    if has_tail:
        query = tail_facts(table, changes=changes, applied=applied, dialect=SPARK)
        found = TailFacts(*lake.spark.sql(query).collect()[0])
    current = view_over_tail(
        table, found, state=stored, changes=changes, applied=applied, dialect=SPARK
    )
    history = history_view(table, changes=changes, dialect=SPARK)
    lake.spark.sql(current).createOrReplaceTempView(naming.current_name(table.name))
    lake.spark.sql(history).createOrReplaceTempView(naming.history_name(table.name))
    progress = SourceProgress(through, applied.floor, applied.rebuilt)
    differing = tuple(_differing(table, dict(rows.dtypes), dict(events.dtypes)))
    return SourceSnapshot(lake, table, progress, may_lack_values(table, found, applied), differing)


def _check_time_zone(lake: LakeTables, table: Table) -> None:
    zone = lake.spark.conf.get("spark.sql.session.timeZone")
    if zone != "UTC":
        raise InputError(
            f"the views of {table.name} need the session's time zone UTC, but it is {zone}",
            'run spark.conf.set("spark.sql.session.timeZone", "UTC") first',
        )


def _differing(table: Table, state: Mapping[str, str], log: Mapping[str, str]) -> Iterator[str]:
    """Yield the columns whose stored types differ from the declared ones."""
    for column in table.columns:
        name, kind = column.name, column.column_type
        for relation, stored, declared in (
            (table.name, state, kind.state),
            (table.changes, log, kind.log),
        ):
            if stored.get(name, declared) != declared:
                yield f"{relation}.{name}:{stored[name]}"


def _sequence_or_none(lake: LakeTables, table: Table) -> int | None:
    """Return the sequence number of a changelog that Firehose writes."""
    return committed_sequence(lake, table) if table.delivery == "firehose" else None
