"""Glue entry point: read the rows of polled tables that have changed since the last poll.

Arguments: --plan s3://.../plan.json --control s3://.../control --source JSON of libpq parameters
--login SECRET [--authorities s3://.../x.pem] [--mask_salt SECRET] [--tables a,b] [--whole true:
read all rows] [--run ID: the report's name] [--metrics NAME of the deployment in CloudWatch].
"""

from __future__ import annotations

import sys

from cdclake import naming
from cdclake.jobs.apply.view_renewal import renew_view
from cdclake.jobs.poll.table_poll import poll_table
from cdclake.jobs.table_jobs.chosen_tables import chosen_polled
from cdclake.jobs.table_jobs.table_job import TableJob, run_over_tables
from cdclake.plan import Table


def poll_and_renew(job: TableJob, table: Table) -> int:
    """Poll the table, which updates its state, and renew the bound in its stored view."""
    rows = poll_table(job, table)
    renew_view(job.lake, job.plan, table)
    return rows


if __name__ == "__main__":
    sys.exit(
        run_over_tables(
            naming.POLL_JOB,
            poll_and_renew,
            chosen_polled,
            required=("source", "login"),
            optional=("authorities", "mask_salt", "whole"),
        )
    )
