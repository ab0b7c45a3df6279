"""Glue entry point: apply changelog rows that the states do not hold yet."""

from __future__ import annotations

import sys
import time

from cdclake import naming
from cdclake.jobs.apply.firehose_changelog import apply_log, swept_below
from cdclake.jobs.apply.rebuilt_state import ingested_through
from cdclake.jobs.apply.state_table import apply_changes
from cdclake.jobs.apply.state_update import StateUpdate
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.table_jobs.table_job import TableJob, run_over_tables
from cdclake.jobs.table_jobs.table_reports import chosen_tables
from cdclake.plan import Table


def apply_table(job: TableJob, table: Table) -> int:
    """Apply the table's pending changes under its lease; return the number of events."""
    with job.leases.hold(table.name):
        if table.delivery == "firehose":
            return apply_log(job.lake, table, floor=delivered_floor(job, table))
        return apply_changes(
            StateUpdate(job.lake, table), through=ingested_through(job.lake, table)
        )


def delivered_floor(job: TableJob, table: Table) -> str:
    """Return the position below which a delivered snapshot has replaced the table's rows."""
    shared = [other for other in job.plan.tables if other.topic == table.topic]
    return swept_below(job.lake, Progress.load(job.control), table, shared, time.time())


if __name__ == "__main__":
    sys.exit(run_over_tables(naming.APPLY_JOB, apply_table, chosen_tables))
