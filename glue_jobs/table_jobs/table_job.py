"""Common part of the jobs that process table by table: arguments, session, report."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from cdclake.backoff import pause_after
from cdclake.iceberg.schemas import key_text
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.control.plan_watcher import PlanWatcher
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.runtime.arguments import read_arguments
from cdclake.jobs.runtime.logs import log_to_stdout
from cdclake.jobs.runtime.metrics import Metrics
from cdclake.jobs.runtime.session import open_session
from cdclake.jobs.table_jobs.table_reports import (
    AdvanceNote,
    JobSubject,
    TableReport,
    failed_tables,
    report_table,
    save_report,
    worst_sizes,
)
from cdclake.plan import Plan, Table

log = logging.getLogger("cdclake.job")

T = TypeVar("T", bound=JobSubject)

FIRST_PAUSE_S, MAX_PAUSE_S = 10.0, 300.0
RETRY_FOR_S = 75 * 60.0  # longer than an hour without S3, Glue or Kafka


@dataclass(frozen=True, slots=True)
class TableJob:
    """Inputs and services of a job that processes tables."""

    plan: Plan
    lake: LakeTables
    leases: Leases
    control: ObjectStore
    named: bool  # whether --tables lists the tables
    arguments: Mapping[str, str] = field(default_factory=dict)
    started: float = field(default_factory=time.time)  # seconds since 1970
    read_plan: Callable[[], Plan] | None = None  # None: the plan does not change

    def with_current_plan(self) -> TableJob:
        """Return the job under the plan as it is now: the stream widens columns during a run."""
        return self if self.read_plan is None else replace(self, plan=self.read_plan())

    @contextmanager
    def holding_state(self, table: Table) -> Iterator[None]:
        """Hold the lease of the table's state; raise TableError if the state has another key."""
        with self.leases.hold(table.name):
            self.lake.check_key(table.name, key_text(table))
            yield


def run_over_tables(
    name: str,
    work: Callable[[TableJob, T], int],
    choose: Callable[[Plan, str | None], Iterator[T]],
    *,
    required: Sequence[str] = (),
    optional: Sequence[str] = (),
) -> int:
    """Do `work` for each table chosen by `--tables`, write the report, return the exit code.

    Arguments: --JOB_NAME --plan s3://.../plan.json --control s3://.../control
    [--tables a,b] [--run ID: the report's name] [--metrics NAME of the deployment in CloudWatch],
    and the `required` and `optional` ones of the job.
    """
    log_to_stdout()
    arguments = read_arguments(
        ["JOB_NAME", "plan", "control", *required], ["tables", "run", "metrics", *optional]
    )
    control = ObjectStore(arguments["control"])
    plans = PlanWatcher(arguments["plan"], control)
    plan = plans.read()
    lake = LakeTables(open_session(arguments["JOB_NAME"]), plan.lake_database)
    job = TableJob(
        plan,
        lake,
        Leases(control, name),
        control,
        named="tables" in arguments,
        arguments=arguments,
        read_plan=plans.read,
    )
    chosen = list(choose(plan, arguments.get("tables")))
    reports = report_tables(job, chosen, _by_current_plan(choose, work))
    report = save_report(control, arguments.get("run", name), reports)
    for line in report["tables"]:
        log.info("%s", line)
    sizes = {} if job.named else worst_sizes(plan, reports)
    Metrics(arguments.get("metrics"), name).publish(lambda: {**failed_tables(report), **sizes})
    return 0 if report["ok"] else 1


def _by_current_plan(
    choose: Callable[[Plan, str | None], Iterator[T]],
    work: Callable[[TableJob, T], int],
) -> Callable[[TableJob, T], int]:
    """Return the work under the plan as it is when a table's turn comes: a run may take hours."""

    def done(job: TableJob, table: T) -> int:
        current = job.with_current_plan()
        [declared] = choose(current.plan, table.name)
        return work(current, declared)

    return done


def report_tables(
    job: TableJob, tables: Sequence[T], work: Callable[[TableJob, T], int]
) -> list[TableReport]:
    """Do `work` for each table and report it; retry tables for which S3 or Glue failed.

    They wait until all other tables are done, then for a pause that grows with each round.
    """
    note = AdvanceNote(job.control, job.arguments.get("run"), len(tables))
    reports: dict[str, TableReport] = {}
    pending, rounds, deadline = list(tables), 0, time.monotonic() + RETRY_FOR_S
    while True:
        for table in pending:
            done = partial(work, job, table)
            reports[table.name] = report_table(job.lake, table, done)
            note.add(reports[table.name])
        pending = [table for table in pending if reports[table.name].will_pass]
        rounds += 1
        if not pending or time.monotonic() > deadline:
            return [reports[table.name] for table in tables]
        pause = pause_after(rounds, FIRST_PAUSE_S, MAX_PAUSE_S)
        names = ", ".join(table.name for table in pending)
        log.warning("%s: retried in %.0f s, since a service failed", names, pause)
        time.sleep(pause)
