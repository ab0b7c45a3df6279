"""Common part of the jobs that process table by table: arguments, session, report."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from cdclake.jobs.control.leases import Leases
from cdclake.jobs.control.plan_watcher import PlanWatcher
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.runtime.arguments import read_arguments
from cdclake.jobs.runtime.logs import log_to_stdout
from cdclake.jobs.runtime.metrics import Metrics
from cdclake.jobs.runtime.session import open_session
from cdclake.jobs.table_jobs.table_reports import (
    chosen_tables,
    failed_tables,
    report_table,
    save_report,
    worst_sizes,
)
from cdclake.plan import Plan, Table


@dataclass(frozen=True, slots=True)
class TableJob:
    """Inputs and services of a job that processes tables."""

    plan: Plan
    lake: LakeTables
    leases: Leases
    control: ObjectStore
    named: bool  # whether --tables lists the tables


def run_over_tables(name: str, work: Callable[[TableJob, Table], int]) -> int:
    """Do `work` for each chosen table, write the report and return the exit code.

    Arguments: --JOB_NAME --plan s3://.../plan.json --control s3://.../control
    [--tables a,b] [--run ID: the report's name] [--metrics NAME of the deployment in CloudWatch].
    """
    log_to_stdout()
    arguments = read_arguments(["JOB_NAME", "plan", "control"], ["tables", "run", "metrics"])
    plan = PlanWatcher(arguments["plan"]).read()
    control = ObjectStore(arguments["control"])
    lake = LakeTables(open_session(arguments["JOB_NAME"]), plan.lake_database)
    job = TableJob(plan, lake, Leases(control, name), control, named="tables" in arguments)
    reports = [
        report_table(lake, table, lambda table=table: work(job, table))  # type: ignore[misc]
        for table in chosen_tables(plan, arguments.get("tables"))
    ]
    report = save_report(control, arguments.get("run", name), reports)
    for line in report["tables"]:
        logging.getLogger("cdclake.job").info("%s", line)
    sizes = {} if job.named else worst_sizes(plan, reports)
    Metrics(arguments.get("metrics"), name).tell(lambda: {**failed_tables(report), **sizes})
    return 0 if report["ok"] else 1
