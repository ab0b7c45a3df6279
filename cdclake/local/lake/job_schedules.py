"""Jobs that the lake's supervisor runs on the pipeline's schedules, as EventBridge does on AWS."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cdclake import naming
from cdclake.activity import step
from cdclake.jobs.control.leases import Leases
from cdclake.local.components.installed import environment, shell
from cdclake.local.lake import stack
from cdclake.local.lake.lake import (
    LakeState,
    LocalLake,
    aws_environment,
    create_bucket_and_database,
    describe_lake,
)
from cdclake.local.process.home import Home
from cdclake.local.process.process_spec import ScheduledJob, Spec
from cdclake.places import IMPORT_ROOT
from cdclake.plan import Plan, Table


def schedule_jobs(lake: LocalLake) -> None:
    """Have the supervisor run the plan's scheduled jobs, and no others."""
    plan = lake.plan
    jobs = {naming.MAINTAIN_JOB: plan.schedules["maintain"]}
    if scheduled_tables(plan):
        jobs[naming.APPLY_JOB] = plan.schedules["apply"]
    if plan.all_tables and "verify" in plan.schedules:
        jobs[naming.VERIFY_JOB] = plan.schedules["verify"]
    if plan.is_checked:
        jobs[naming.CHECK_JOB] = plan.schedules["checks"]
    scheduled = [ScheduledJob(schedule, _spec(lake, job)) for job, schedule in jobs.items()]
    refreshed = [
        ScheduledJob(table.schedule, _spec(lake, naming.REFRESH_JOB, table.name))
        for table in plan.derived
    ]
    polls = [ScheduledJob(every, _poll_spec(lake, tables)) for every, tables in plan.polls.items()]
    published = [
        ScheduledJob(copy.schedule, _spec(lake, naming.PUBLISH_JOB, copy.name))
        for copy in plan.copies
    ]
    stack.schedule_jobs(lake.home, [*scheduled, *refreshed, *polls, *published])


def end_earlier_runs(home: Home) -> None:
    """Free the leases of jobs that ended with an earlier supervisor, and delete their reports.

    Do nothing if that is done: the scheduled jobs of the present one may run. An `up` that failed
    before it leaves it to the next one.
    """
    if not home.earlier_leases_file.exists():
        return
    state = LakeState.load(home)
    if state.plan:
        lake = describe_lake(home, state)
        create_bucket_and_database(lake)  # the first `up` may have ended before it
        held = (naming.APPLY_JOB, naming.MAINTAIN_JOB, naming.REFRESH_JOB)
        for job in (*held, naming.POLL_JOB, naming.PUBLISH_JOB):
            Leases(lake.control, job).abandon_earlier_runs()
        with step("delete reports of earlier runs"):
            lake.control.delete_all(naming.REPORTS)
    home.earlier_leases_file.unlink()


def scheduled_tables(plan: Plan) -> list[Table]:
    """Return the tables whose states the apply job updates on its schedule."""
    return [table for table in plan.tables if table.apply == "scheduled"]


def _poll_spec(lake: LocalLake, tables: Sequence[Table]) -> Spec:
    named = ",".join(table.name for table in tables)
    return _spec(lake, naming.POLL_JOB, named, tables[0].poll.run_name)


def _spec(lake: LocalLake, job: str, table: str = "", name: str = "") -> Spec:
    name = name or (f"{job}-{table}" if table else job)
    return Spec(
        name=name,
        argv=(
            *(sys.executable, "-m", "cdclake.local.scheduled_job"),
            *("--home", str(lake.home.path), "--job", job),
            *(("--table", table) if table else ()),
        ),
        env=environment(**aws_environment(lake.endpoints)),
        shell=shell(),
        cwd=str(IMPORT_ROOT),
        log=str(lake.home.log(name)),
    )
