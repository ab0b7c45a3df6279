"""Glue entry point: refresh the derived tables, or those that `--tables` names."""

from __future__ import annotations

import sys

from cdclake import naming
from cdclake.jobs.derived.refresh import refresh
from cdclake.jobs.table_jobs.chosen_tables import chosen_derived
from cdclake.jobs.table_jobs.table_job import run_over_tables

if __name__ == "__main__":
    sys.exit(run_over_tables(naming.REFRESH_JOB, refresh, chosen_derived))
