"""Schedules of the jobs over tables, as the pipeline file declares them."""

from __future__ import annotations

from collections.abc import Mapping

from cdclake import naming
from cdclake.plan import Plan
from cdclake.scheduled_runs import table_run
from cdclake.stacks.constructs.job_schedule import JobSchedules


def schedule_table_jobs(plan: Plan, schedules: JobSchedules, jobs: Mapping[str, str]) -> None:
    """Schedule them; `jobs` has the names of the deployed Glue jobs."""
    named = {
        "Maintain": ("maintain", naming.MAINTAIN_JOB, True),
        "Apply": ("apply", naming.APPLY_JOB, any(t.apply == "scheduled" for t in plan.tables)),
        "Verify": ("verify", naming.VERIFY_JOB, "verify" in plan.schedules),
        "Check": ("checks", naming.CHECK_JOB, plan.is_checked),
    }
    for what, (schedule, job, is_wanted) in named.items():
        if is_wanted:
            schedules.start_job(what, schedule=plan.schedules[schedule], job=jobs[job])
    own = (
        *(("Refresh", naming.REFRESH_JOB, t.name, t.schedule) for t in plan.derived),
        *(("Publish", naming.PUBLISH_JOB, c.name, c.schedule) for c in plan.copies),
    )
    for what, job, name, schedule in own:
        schedules.start_job(
            f"{what}-{name}",
            schedule=schedule,
            job=jobs[job],
            # The runs of other tables write their reports under other names.
            arguments={"--tables": name, "--run": table_run(job, name)},
        )
    for every, tables in plan.polls.items():
        polling = tables[0].poll
        schedules.start_job(
            f"Poll-{polling.schedule_name}",
            schedule=every,
            job=jobs[naming.POLL_JOB],
            arguments={
                "--tables": ",".join(table.name for table in tables),
                "--run": polling.run_name,  # a run of this name gives way to other polls
            },
        )
