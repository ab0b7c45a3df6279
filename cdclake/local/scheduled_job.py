"""One run of a scheduled job on the local lake, as the supervisor starts it.

Exit code 0: done, or nothing to do; 1: lake and source differ, or a table breaks its rules; 4: it
failed. A run that finds nothing new costs no Spark.
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from cdclake import naming
from cdclake.control_objects import DerivedProgress, derived_name
from cdclake.debezium.position import history_part
from cdclake.errors import CdcError
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.requests import last_erasure
from cdclake.jobs.iceberg.object_storage import ObjectStorage
from cdclake.jobs.publish.copy_stamp import stamp_of
from cdclake.jobs.publish.hudi_timeline import copy_folder, newest_stamped
from cdclake.jobs.reader.point_in_time import NOW
from cdclake.jobs.reader.relations import applied_at, is_applied, progress_now
from cdclake.jobs.runtime.logs import log_to_stdout
from cdclake.local.components.installed import REGION
from cdclake.local.lake.job_schedules import scheduled_tables
from cdclake.local.lake.lake import LocalLake, open_lake
from cdclake.local.lake.spark_jobs import run_job
from cdclake.local.process.home import Home
from cdclake.local.reader.duck import lake_reader
from cdclake.local.verify import verify_lake
from cdclake.plan import Table
from cdclake.quality_rule import broke_rules_only

log = logging.getLogger("cdclake.schedule")

_DIFFERENT, _FAILED = 1, 4


def main() -> int:
    """Run the job that the arguments name; return the exit code."""
    log_to_stdout()
    parser = argparse.ArgumentParser(description="Run a scheduled job once.")
    parser.add_argument("--home", required=True, type=Path)
    parser.add_argument("--job", required=True)
    parser.add_argument("--table", help="the derived table or copy, or the tables to poll")
    given = parser.parse_args()
    try:
        return run(open_lake(Home(given.home)), given.job, given.table)
    except CdcError as error:
        log.error("%s failed: %s", given.job, error)
        return _FAILED


def run(lake: LocalLake, job: str, table: str | None = None) -> int:
    """Run the job on a running lake, for the derived table, copy or polled tables given."""
    if job == naming.VERIFY_JOB:
        report = verify_lake(lake)
        for compared in report.tables:
            log.info("%s: %s", compared.table, "equal" if compared.ok else "DIFFERENT")
        return 0 if report.ok else _DIFFERENT
    tables = _behind(lake) if job == naming.APPLY_JOB else [table] if table else []
    if job == naming.APPLY_JOB and not tables:
        log.info("nothing to apply")
        return 0
    if job == naming.POLL_JOB and lake.state.paused:
        log.info("the lake is paused")
        return 0
    if job == naming.REFRESH_JOB and table is not None and _is_refreshed(lake, table):
        log.info("%s: nothing has changed", table)
        return 0
    if job == naming.PUBLISH_JOB and table is not None and _is_published(lake, table):
        log.info("%s: nothing has changed", table)
        return 0
    answer = run_job(lake, job, tables)
    for line in answer["tables"]:
        log.info("%s", line)
    if broke_rules_only(answer):
        return _DIFFERENT
    return 0 if answer["ok"] else _FAILED


def _is_refreshed(lake: LocalLake, name: str) -> bool:
    """Check whether no source of a derived table has changed since its last refresh."""
    plan = lake.plan
    derived, stored = plan.derived_table(name), lake.control.read(derived_name(name))
    if stored is None:
        return False
    known = DerivedProgress.from_json(stored.content)
    sources = [plan.table(source) for source in derived.sources]
    loaded = lake_reader(lake).load(sources, quarantine=False)
    now = {t.name: progress_now(t, loaded[t.name], loaded[t.changes]) for t in sources}
    return known.definition == plan.definition_of(derived) and known.sources == now


def _is_published(lake: LocalLake, name: str) -> bool:
    """Check whether a copy's state has applied nothing since the copy was written."""
    copy = lake.plan.copy(name)
    table = lake.plan.table(copy.table)
    storage = ObjectStorage.of({"s3.endpoint": lake.s3, "client.region": REGION})
    folder = copy_folder(lake.warehouse_uri, lake.plan.lake_database, name)
    known = newest_stamped(storage, folder)
    if known is None:
        return False
    loaded = lake_reader(lake).load([table], quarantine=False)
    applied = applied_at(loaded[table.name], NOW)
    erasure = last_erasure(lake.control, table.name)
    return known.stamp.of_table(table) == stamp_of(copy, table, applied, erasure)


def _behind(lake: LocalLake) -> list[str]:
    """Return the scheduled tables whose state lacks changes of their changelog.

    A state that has them may have rows that a delivered snapshot will replace.
    """
    scheduled = scheduled_tables(lake.plan)
    loaded = lake_reader(lake).load(scheduled, quarantine=False)
    complete = Progress.load(lake.control).complete_snapshot
    floor = history_part(complete) if complete else ""

    def is_behind(table: Table) -> bool:
        state = loaded[table.name]
        if not is_applied(state, loaded[table.changes], NOW):
            return True
        return table.delivery == "firehose" and applied_at(state, NOW).floor < floor

    return [table.name for table in scheduled if is_behind(table)]


if __name__ == "__main__":
    sys.exit(main())
