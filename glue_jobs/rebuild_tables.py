"""Glue entry point: rebuild states from their changelogs.

Arguments: those of `run_over_tables`. If Firehose delivers tables: --mask_salt, the salt's
secret, and [--delivery_seconds, the longest time of an append; default: from the plan].
"""

from __future__ import annotations

import sys

from cdclake import naming
from cdclake.iceberg.schemas import key_text
from cdclake.jobs.apply.declared_columns import check_declaration
from cdclake.jobs.apply.rebuilt_state import create_missing_state, rebuild_state
from cdclake.jobs.iceberg.commit_retry import retry_on_conflict
from cdclake.jobs.operations.delivered_changes import rebuild_delivered
from cdclake.jobs.table_jobs.chosen_tables import chosen_tables
from cdclake.jobs.table_jobs.table_job import TableJob, run_over_tables
from cdclake.plan import Table


def rebuild_table(job: TableJob, table: Table) -> int:
    """Rebuild the table's state, even a missing one, in one commit; return the number of rows."""
    with job.leases.hold(table.name):
        create_missing_state(job.lake, table, job.plan)
        job.lake.check_key(table.name, key_text(table))
        return retry_on_conflict(table.name, lambda: _rebuild(job, table))


def _rebuild(job: TableJob, table: Table) -> int:
    if table.delivery == "firehose":
        return rebuild_delivered(job, table)
    return rebuild_state(job.lake, table, check=lambda _: check_declaration(job.lake, table))


if __name__ == "__main__":
    sys.exit(run_over_tables(
        naming.REBUILD_JOB, rebuild_table, chosen_tables,
        optional=("mask_salt", "delivery_seconds"),
    ))  # fmt: skip
