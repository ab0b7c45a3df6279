"""Glue entry point: purge, collapse, compact and expire each table, and remove its orphan files."""

from __future__ import annotations

import sys

from cdclake import naming
from cdclake.jobs.maintenance.table_maintenance import chosen_maintained, maintain
from cdclake.jobs.table_jobs.table_job import run_over_tables

if __name__ == "__main__":
    sys.exit(run_over_tables(naming.MAINTAIN_JOB, maintain, chosen_maintained))
