"""Glue entry point: update the Hudi copies, or those that `--tables` names."""

from __future__ import annotations

import sys

from cdclake import naming
from cdclake.jobs.publish.publish import publish
from cdclake.jobs.table_jobs.chosen_tables import chosen_copies
from cdclake.jobs.table_jobs.table_job import run_over_tables

if __name__ == "__main__":
    sys.exit(run_over_tables(naming.PUBLISH_JOB, publish, chosen_copies))
