"""Glue entry point: read the rows of polled tables that have changed since the last poll.

Arguments: --plan s3://.../plan.json --control s3://.../control --source JSON of libpq parameters
--login SECRET [--authorities s3://.../x.pem] [--mask_salt SECRET] [--tables a,b] [--run ID: the
report's name] [--metrics NAME of the deployment in CloudWatch].
"""

from __future__ import annotations

import sys

from cdclake import naming
from cdclake.jobs.poll.table_poll import poll_table
from cdclake.jobs.table_jobs.table_job import run_over_tables
from cdclake.jobs.table_jobs.table_reports import chosen_polled

if __name__ == "__main__":
    sys.exit(
        run_over_tables(
            naming.POLL_JOB,
            poll_table,
            chosen_polled,
            required=("source", "login"),
            optional=("authorities", "mask_salt"),
        )
    )
