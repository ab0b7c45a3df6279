"""The maintenance of one table: every action on its log and on its state."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial

from cdclake.errors import TableError
from cdclake.jobs.iceberg.commit_retry import retry_on_conflict
from cdclake.jobs.maintenance.actions import ACTIONS, MaintainedTable
from cdclake.jobs.table_jobs.table_job import TableJob
from cdclake.plan import Table


def maintain_table(job: TableJob, table: Table) -> int:
    """Run every action on the table's log, then on its state, each under a lease of its own.

    A table that Glue maintains, or nobody, is left alone, and refused where it was asked for: two
    that compact and expire one table would undo each other's commits. Applies no rows.
    """
    if table.maintenance != "own":
        if job.named:
            raise TableError(
                table.name,
                f"this job does not maintain it: the file says `maintenance: {table.maintenance}`",
                "write `maintenance: own` and deploy, or leave the table out",
            )
        return 0
    now, history = datetime.now(UTC), timedelta(days=job.plan.history_days)
    for name in (table.changes, table.name):
        with job.leases.hold(name):
            _maintain(MaintainedTable(job.lake, table, name, now, history))
    return 0


def _maintain(upkeep: MaintainedTable) -> None:
    for action in ACTIONS.values():
        retry_on_conflict(upkeep.name, partial(action, upkeep))
