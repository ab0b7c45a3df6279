"""Refresh of one derived table."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake.control_objects import DerivedProgress, SourceProgress, derived_name
from cdclake.derived_table import DerivedTable
from cdclake.errors import TableError
from cdclake.fail_points import reach
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.schemas import DEFINITION_PROPERTY, DERIVED_PROPERTY
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.derived.derived_rows import ChangedRows, changed_rows, check_keys
from cdclake.jobs.derived.file_copy import write_files
from cdclake.jobs.derived.own_table import check_format, is_own
from cdclake.jobs.derived.source_snapshot import SourceSnapshot, definition_of, open_source
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.iceberg.views import viewed
from cdclake.jobs.maintenance.actions import MaintainedTable
from cdclake.jobs.maintenance.table_maintenance import run_actions
from cdclake.jobs.table_jobs.table_job import TableJob

log = logging.getLogger("cdclake.derived")

_MAINTAINED_EVERY_S = 24 * 3600
_IS_LIVE = "cdc__is_live"
_PROPERTIES = {
    DERIVED_PROPERTY: "true",
    "write.delete.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.metadata.delete-after-commit.enabled": "true",
}


def refresh(job: TableJob, table: DerivedTable) -> int:
    """Bring the table up to date in one commit; return the number of rows written or deleted.

    Readers see the table before or after the commit. The progress is noted after it: a run that is
    killed in between, or fails, is done again with the same result. Without a change in a source,
    nothing is written. A table that has changed is maintained once a day, after the note, since
    maintenance may fail. Raises TableError if another run has taken over the lease: it may have
    read newer sources.
    """
    with job.leases.hold(table.name):
        sources = [open_source(job.lake, job.plan.table(name)) for name in table.sources]
        definition = definition_of(job.plan, table, sources)
        known = _known(job, table, definition)
        now = {source.table.name: source.progress for source in sources}
        if known is not None and known.sources == now:
            return 0
        if known is None:
            _note_whole_write(job, table)
        since = None if known is None else known.sources
        written = _write(job, table, definition, sources, since)
        reach("after_derived_commit")
        at = time.time() if known is None else known.maintained_at
        noted = DerivedProgress(definition, now, at)
        _note(job, table, noted)
        if table.stored and time.time() - at > _MAINTAINED_EVERY_S:
            _maintain(job, table)
            _note(job, table, replace(noted, maintained_at=time.time()))
        return written


def _note(job: TableJob, table: DerivedTable, noted: DerivedProgress) -> None:
    job.leases.check(table.name)
    job.control.write(derived_name(table.name), noted.to_json())


def _note_whole_write(job: TableJob, table: DerivedTable) -> None:
    """Note that the rows may be those of any definition until the whole result is noted.

    A run that is killed after its commit may be followed by one of the plan before. A table without
    a note needs none: `forget` takes a noted table for one that was refreshed.
    """
    stored = job.control.read(derived_name(table.name))
    if stored is not None:
        job.control.write(derived_name(table.name), {**stored.content, "definition": ""})


def _maintain(job: TableJob, table: DerivedTable) -> None:
    """Compact the table and expire its snapshots."""
    run_actions(MaintainedTable(job.lake, None, table.name, datetime.now(UTC)))


def _known(job: TableJob, table: DerivedTable, definition: str) -> DerivedProgress | None:
    """Return what the stored table contains; None if it has to be written as a whole.

    Raises TableError if the catalog has another table of its name: it may be that of a source
    table which has left the file, and its rows may be nowhere else.
    """
    stored = job.control.read(derived_name(table.name))
    # The first refresh of an Iceberg table needs no look: Iceberg refuses an entry of files.
    if stored is not None or not table.stored:
        check_format(job.lake, table)
    for name in table.stored:
        properties = job.lake.properties(name)
        if properties is not None and not is_own(properties, is_noted=stored is not None):
            raise TableError(
                name,
                "the lake has a table of this name that no refresh has created",
                "rename the derived table; or drop the other table if its rows are not needed",
            )
        if properties is None or DERIVED_PROPERTY not in properties:
            return None
        if properties.get(DEFINITION_PROPERTY, definition) != definition:
            return None  # such as after an erasure by a job with another plan
    if stored is None:
        return None
    known = DerivedProgress.from_json(stored.content)
    return known if known.definition == definition else None


def _write(
    job: TableJob,
    table: DerivedTable,
    definition: str,
    sources: Sequence[SourceSnapshot],
    since: Mapping[str, SourceProgress] | None,
) -> int:
    if table.format != "iceberg":
        return write_files(job.lake, table, job.leases)
    changed = None if since is None else _changed_keys(table, sources, since)
    if changed is None:
        return write_whole(job.lake, table, job.leases, definition)
    with changed_rows(job.lake, table, changed) as rows:
        return _merge(job, table, rows)


def _changed_keys(
    table: DerivedTable, sources: Sequence[SourceSnapshot], since: Mapping[str, SourceProgress]
) -> dict[str, DataFrame] | None:
    """Return the changed keys by changed source; None if the table must be written as a whole."""
    found: dict[str, DataFrame] = {}
    for source in sources:
        name = source.table.name
        if source.progress == since[name]:
            continue
        keys = source.changed_keys(since[name]) if table.source_keys else None
        if keys is None:
            log.info("%s: written as a whole", table.name, extra={"table": table.name})
            return None
        found[name] = keys
    return found


def write_whole(lake: LakeTables, table: DerivedTable, leases: Leases, definition: str) -> int:
    """Replace the table by the query's whole result, in one commit; return its number of rows.

    The commit carries the definition. Raises TableError, and commits nothing, if the table's lease
    has been taken over: Iceberg replaces a table without a check for other writers.
    """
    with ExitStack() as held:
        rows = held.enter_context(persisted(lake.spark.sql(table.sql)))
        check_keys(table, rows)
        view = held.enter_context(viewed(rows))
        partitioned = f" PARTITIONED BY ({', '.join(table.partition_by)})"
        properties = ", ".join(
            f"{SPARK.text(key)} = {SPARK.text(value)}"
            for key, value in {**_PROPERTIES, DEFINITION_PROPERTY: definition}.items()
        )
        leases.check(table.name)
        lake.spark.sql(
            f"CREATE OR REPLACE TABLE {lake.qualified(table.name)} USING iceberg"
            f"{partitioned if table.partition_by else ''} TBLPROPERTIES ({properties})"
            f" AS SELECT * FROM {view}"
        )
        return rows.count()


def _merge(job: TableJob, table: DerivedTable, changed: ChangedRows) -> int:
    live = changed.live.withColumn(_IS_LIVE, F.lit(True))
    gone = changed.gone.withColumn(_IS_LIVE, F.lit(False))
    rows = live.unionByName(gone, allowMissingColumns=True)
    written = rows.count()  # before the commit, which makes Spark read the stored table again
    columns = [SPARK.name(column) for column in changed.live.columns]
    keys = " AND ".join(f"t.{SPARK.name(key)} = s.{SPARK.name(key)}" for key in table.key)
    differs = " OR ".join(f"NOT (t.{column} <=> s.{column})" for column in columns)
    job.leases.check(table.name)
    with viewed(rows) as view:
        job.lake.spark.sql(
            f"MERGE INTO {job.lake.qualified(table.name)} AS t USING {view} AS s ON {keys}"
            f" WHEN MATCHED AND NOT s.{_IS_LIVE} THEN DELETE"
            f" WHEN MATCHED AND ({differs}) THEN UPDATE SET"
            f" {', '.join(f't.{column} = s.{column}' for column in columns)}"
            f" WHEN NOT MATCHED AND s.{_IS_LIVE} THEN INSERT ({', '.join(columns)})"
            f" VALUES ({', '.join(f's.{column}' for column in columns)})"
        )
    return written
