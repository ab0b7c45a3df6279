"""Glue entry point: check the quality rules of each table; report, metric and log."""

from __future__ import annotations

import sys

from cdclake import naming
from cdclake.jobs.quality.rule_check import check_table
from cdclake.jobs.table_jobs.chosen_tables import chosen_checked
from cdclake.jobs.table_jobs.table_job import run_over_tables

if __name__ == "__main__":
    sys.exit(run_over_tables(naming.CHECK_JOB, check_table, chosen_checked))
