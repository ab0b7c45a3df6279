"""Glue entry point: apply changelog rows that the states do not hold yet.

Arguments: those of `run_over_tables`. If Firehose delivers tables: --mask_salt, the salt's
secret, and [--delivery_seconds, the longest time of an append; default: from the plan].
"""

from __future__ import annotations

import sys

from cdclake import naming
from cdclake.jobs.apply.state_table import apply_all
from cdclake.jobs.apply.view_renewal import renew_view
from cdclake.jobs.operations.delivered_changes import apply_delivered
from cdclake.jobs.table_jobs.chosen_tables import chosen_tables
from cdclake.jobs.table_jobs.table_job import TableJob, run_over_tables
from cdclake.plan import Table


def apply_table(job: TableJob, table: Table) -> int:
    """Apply the table's pending changes under its lease; return the number of events."""
    with job.holding_state(table):
        if table.delivery == "firehose":
            return apply_delivered(job, table)
        return apply_all(job.lake, table)


def apply_and_renew(job: TableJob, table: Table) -> int:
    """Apply the table's pending changes, and renew the bound in its stored view."""
    events = apply_table(job, table)
    renew_view(job.lake, job.plan, table)
    return events


if __name__ == "__main__":
    sys.exit(run_over_tables(
        naming.APPLY_JOB, apply_and_renew, chosen_tables,
        optional=("mask_salt", "delivery_seconds"),
    ))  # fmt: skip
