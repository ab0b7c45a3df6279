"""Rebuild of a state from its whole changelog, by Spark."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.errors import TableError
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.latest_row import CREATED_AT, deleted_by_source, floor_of_log
from cdclake.iceberg.merge import above_truncates, rebuilt_rows
from cdclake.iceberg.schemas import state_schema
from cdclake.iceberg.views import AppliedThrough
from cdclake.jobs.apply.changelog_commits import committed_sequence, reached
from cdclake.jobs.apply.declared_columns import check_changelog
from cdclake.jobs.apply.key_changes import with_origins
from cdclake.jobs.apply.pending_facts_query import facts_of_rows
from cdclake.jobs.apply.state_task import carried_columns
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp, state_stamp, state_stamp_json
from cdclake.jobs.iceberg.lake_tables import LakeTables, overwrite
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.iceberg.views import viewed
from cdclake.plan import Plan, Table

_HELD_AT = "cdc__held_at"  # position of the row that the state has

Check = Callable[[DataFrame], None]  # of the changelog's rows that are about to be applied


def accept_all(rows: DataFrame) -> None:
    """Check nothing."""


def applied_through(lake: LakeTables, table: Table) -> AppliedThrough:
    """Read how far the state is applied from its newest stamp."""
    stamp = lake.stamped(table.name).stamp
    return state_stamp(stamp) if stamp else AppliedThrough()


def ingested_through(lake: LakeTables, table: Table) -> int:
    """Read the changelog's newest time of ingestion from its newest stamp."""
    stamp = lake.stamped(table.changes).stamp
    return ChangesStamp.from_json(stamp).ingested_through if stamp else 0


def create_missing_state(lake: LakeTables, table: Table, plan: Plan) -> None:
    """Create the state, empty and without a stamp, if the catalog does not have it.

    Raises an error if the changelog does not exist either, if it has other columns than the plan,
    or if it has rows and no stamp: the empty state would pass for one that was rebuilt.
    """
    if lake.exists(table.name):
        return
    stamped = lake.stamped(table.changes)
    has_stamps = table.delivery != "firehose"
    if has_stamps and stamped.snapshot_id is not None and stamped.stamp is None:
        raise TableError(
            table.name,
            f"its state is gone, and no snapshot of {table.changes} has a stamp",
            "another tool has written to the changelog or expired its snapshots: restore a snapshot"
            " with a stamp",
        )
    check_changelog(lake, table)
    lake.create_missing(state_schema(table, plan))


def rebuild_state(
    lake: LakeTables,
    table: Table,
    *,
    floor: str = "",
    through: int | None = None,
    check: Check = accept_all,
) -> int:
    """Rebuild the state from its changelog in one commit; return the number of rows.

    Only the values of dropped columns come from the existing rows. `floor` is a sweep's that may
    not be in the changelog. `through` is the newest time of ingestion to read, by default the
    changelog's newest; a changelog that Firehose writes is read as a whole. An error that `check`
    raises ends it, with nothing committed. The stamp gets a new id of the rebuild, so that derived
    tables and copies are written as a whole. Iceberg refuses the commit if another writer has
    changed the state since the call began.
    """
    read_from = lake.stamped(table.name).snapshot_id
    log, until = _whole_log(lake, table, floor, through)
    with ExitStack() as held:
        changes = held.enter_context(persisted(log))
        check(changes)
        facts = facts_of_rows(changes)
        carried = carried_columns(table, {*facts.unavailable})
        if facts.carried_key_changes:
            whole = lake.read(table.changes)
            changes = held.enter_context(with_origins(changes, whole, table))
        floor = floor_of(lake, changes, until.floor)
        kept = changes.where(above_truncates(table, floor))
        done = replace(
            until, floor=floor, carried=carried, newest=facts.highest, rebuilt=uuid.uuid4().hex
        )
        with viewed(kept) as view:
            rows = lake.spark.sql(rebuilt_rows(table, view, carried, floor, with_creation=True))
            stamp = state_stamp_json(done)
            writer = _with_dropped(lake, table, rows).writeTo(lake.qualified(table.name))
            writer = writer.option(f"snapshot-property.{naming.STAMP_PROPERTY}", stamp)
            overwrite(writer, F.lit(True), read_from=read_from)
    return lake.read(table.name).count()


def _with_dropped(lake: LakeTables, table: Table, rows: DataFrame) -> DataFrame:
    """Add the state's values of dropped columns to the rows, which have `CREATED_AT`.

    The changelog does not have them: in it a NULL from before the drop and an event from after it
    look the same. A row that began after the stored one is another row, without these values.
    """
    stored = lake.read(table.name)
    dropped = [column for column in stored.columns if column not in rows.columns]
    if not dropped:
        return rows.drop(CREATED_AT)
    alive = stored if table.deletes == "soft" else stored.where(f"NOT {deleted_by_source()}")
    newest = [F.max_by(column, naming.POSITION).alias(column) for column in dropped]
    newest.append(F.max(naming.POSITION).alias(_HELD_AT))
    held = alive.groupBy(*table.key).agg(*newest)  # a state that is rebuilt may have duplicates
    is_same = F.col(CREATED_AT) <= F.col(_HELD_AT)
    values = {column: F.when(is_same, F.col(column)) for column in dropped}
    return rows.join(held, [*table.key], "left").withColumns(values).select(*stored.columns)


def _whole_log(
    lake: LakeTables, table: Table, floor: str, through: int | None
) -> tuple[DataFrame, AppliedThrough]:
    """Read the changelog's rows up to `through`, and the progress of a state that holds them."""
    if table.delivery != "firehose":
        if through is None:
            through = ingested_through(lake, table)
        rows = lake.read(table.changes)
        ingested = rows.where(f"{naming.INGESTED_AT} <= {SPARK.instant(through)}")
        return ingested, AppliedThrough(through, floor)
    sequence = committed_sequence(lake, table)  # read before the rows: there may be more of them
    log = lake.read(table.changes)
    # A changelog that Firehose writes has no sweeps.
    known = max(floor, applied_through(lake, table).floor)
    return log, reached(log, sequence, known)


def floor_of(lake: LakeTables, changes: DataFrame, known: str) -> str:
    """Return the greatest truncate position of the changes and `known`."""
    with viewed(changes) as view:
        return str(lake.spark.sql(floor_of_log(view, known, SPARK)).collect()[0]["floor"])
