"""Glue entry point: rebuild states from their changelogs."""

from __future__ import annotations

import sys

from cdclake import naming
from cdclake.jobs.apply.rebuilt_state import rebuild_state
from cdclake.jobs.table_jobs.table_job import TableJob, run_over_tables
from cdclake.jobs.table_jobs.table_reports import chosen_tables
from cdclake.plan import Table


def rebuild_table(job: TableJob, table: Table) -> int:
    """Rebuild the table's state from its changelog in one commit; return the number of rows."""
    with job.leases.hold(table.name):
        return rebuild_state(job.lake, table)


if __name__ == "__main__":
    sys.exit(run_over_tables(naming.REBUILD_JOB, rebuild_table, chosen_tables))
