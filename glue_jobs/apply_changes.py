"""Glue entry point: apply changelog rows that the states do not hold yet.

Arguments: --plan s3://.../plan.json --control s3://.../control [--mask_salt NAME of the secret with
the pipeline's salt, which is needed once rows of a table that Firehose delivers are erased]
[--tables a,b] [--run ID: the report's name] [--metrics NAME of the deployment in CloudWatch].
"""

from __future__ import annotations

import sys

from cdclake import naming
from cdclake.jobs.apply.firehose_changelog import apply_log, delivered_floor
from cdclake.jobs.apply.rebuilt_state import ingested_through
from cdclake.jobs.apply.state_table import apply_changes
from cdclake.jobs.apply.state_update import StateUpdate
from cdclake.jobs.apply.view_renewal import renew_view
from cdclake.jobs.operations.delivered_erasure import erase_delivered
from cdclake.jobs.table_jobs.table_job import TableJob, run_over_tables
from cdclake.jobs.table_jobs.table_reports import chosen_tables
from cdclake.plan import Table


def apply_table(job: TableJob, table: Table) -> int:
    """Apply the table's pending changes under its lease; return the number of events.

    Of a table that Firehose delivers, first erase what `forget` asks for.
    """
    with job.leases.hold(table.name):
        if table.delivery == "firehose":
            erase_delivered(job, table)
            floor = delivered_floor(job.lake, job.control, job.plan, table)
            return apply_log(job.lake, table, floor=floor)
        return apply_changes(
            StateUpdate(job.lake, table), through=ingested_through(job.lake, table)
        )


def apply_and_renew(job: TableJob, table: Table) -> int:
    """Apply the table's pending changes, and renew the bound in its stored view."""
    events = apply_table(job, table)
    renew_view(job.lake, job.plan, table)
    return events


if __name__ == "__main__":
    sys.exit(
        run_over_tables(naming.APPLY_JOB, apply_and_renew, chosen_tables, optional=("mask_salt",))
    )
