"""Names of the scheduled runs of a deployment's jobs over tables, and of their reports."""

from __future__ import annotations

from cdclake import naming
from cdclake.plan import Plan


def table_run(job: str, table: str) -> str:
    """Return the name of a job's runs for one table or copy, which has its own schedule.

    >>> table_run("refresh_derived", "sales")
    'refresh_derived-sales'
    """
    return f"{job}-{table}"


def scheduled_runs(plan: Plan) -> dict[str, str]:
    """Return the job of each scheduled run, by the run's name; that over all tables has the job's.

    Polls are left out: each polled table has its last error.
    """
    of_all = {
        naming.MAINTAIN_JOB: True,
        naming.APPLY_JOB: any(table.apply == "scheduled" for table in plan.tables),
        naming.VERIFY_JOB: "verify" in plan.schedules,
        naming.CHECK_JOB: plan.is_checked,
    }
    return {
        **{job: job for job, is_scheduled in of_all.items() if is_scheduled},
        **{table_run(naming.REFRESH_JOB, t.name): naming.REFRESH_JOB for t in plan.derived},
        **{table_run(naming.PUBLISH_JOB, c.name): naming.PUBLISH_JOB for c in plan.copies},
    }
