"""Maintenance of the Iceberg tables: changelog and state of each table, and the quarantine."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from cdclake import naming
from cdclake.errors import TableError
from cdclake.fail_points import reach
from cdclake.firehose.redrive_stream import lateness_seconds
from cdclake.iceberg.collapse import collapse_age
from cdclake.iceberg.schemas import key_text
from cdclake.jobs.iceberg.commit_retry import retry_on_conflict
from cdclake.jobs.iceberg.error_policy import Kind, cause_of
from cdclake.jobs.maintenance.actions import ACTIONS, MaintainedTable
from cdclake.jobs.table_jobs.table_job import TableJob
from cdclake.plan import Plan, Table

log = logging.getLogger("cdclake.job")
_NOT_OF_THE_TABLE = (Kind.JVM_FAILED, Kind.UNAVAILABLE, Kind.COMMIT_UNKNOWN)


@dataclass(frozen=True, slots=True)
class SharedQuarantine:
    """Table of refused events, which all tables of a plan share."""

    name: str = naming.QUARANTINE
    stored: tuple[str, ...] = (naming.QUARANTINE,)


def chosen_maintained(plan: Plan, names: str | None) -> Iterator[Table | SharedQuarantine]:
    """Yield the tables that `--tables a,b` names, or all and the quarantine."""
    if not names:
        yield from plan.all_tables
        if plan.all_tables:  # without tables, no job creates the quarantine
            yield SharedQuarantine()
        return
    for name in names.split(","):
        yield SharedQuarantine() if name == naming.QUARANTINE else plan.table(name)


def maintain(job: TableJob, stored: Table | SharedQuarantine) -> int:
    """Maintain a table, or the quarantine; return 0, the number of applied rows."""
    if isinstance(stored, Table):
        return maintain_table(job, stored)
    return maintain_quarantine(job)


def maintain_quarantine(job: TableJob) -> int:
    """Run every action on the quarantine under its lease; return 0, the number of applied rows.

    The setting `maintenance` of a table does not concern it.
    """
    if job.lake.exists(naming.QUARANTINE):  # the first poll creates that of a plan without stream
        with job.leases.hold(naming.QUARANTINE):
            run_actions(MaintainedTable(job.lake, None, naming.QUARANTINE, datetime.now(UTC)))
    return 0


def maintain_table(job: TableJob, table: Table) -> int:
    """Run every action on the changelog, then on the state, each under its own lease.

    Skips a table that Glue maintains or that is not maintained at all; raises TableError if
    `--tables` names it. Two maintainers of one table would undo each other's commits. Returns 0,
    the number of applied rows.
    """
    if table.maintenance != "own":
        if job.named:
            raise TableError(
                table.name,
                f"this job does not maintain it: the file has `maintenance: {table.maintenance}`",
                "write `maintenance: own` and deploy, or leave the table out",
            )
        return 0
    job.lake.check_key(table.name, key_text(table))  # a changelog collapses by the key
    now, history = datetime.now(UTC), collapse_age(job.plan.history_days)
    readers = timedelta(hours=job.plan.stream_readers_hours)
    lateness = timedelta(seconds=lateness_seconds(job.plan, table))

    def maintain_one(name: str) -> None:
        with job.leases.hold(name):
            run_actions(MaintainedTable(job.lake, table, name, now, history, readers, lateness))

    _run_all({name: partial(maintain_one, name) for name in (table.changes, table.name)})
    return 0


def run_actions(upkeep: MaintainedTable) -> None:
    """Run every action on one Iceberg table, whose lease the caller holds.

    None needs another one's result: see `_run_all`.
    """

    def run_one(action: Callable[[MaintainedTable], None]) -> None:
        retry_on_conflict(upkeep.name, partial(action, upkeep))
        reach("inside_maintenance")

    _run_all({f"{upkeep.name}: {name}": partial(run_one, act) for name, act in ACTIONS.items()})


def _run_all(steps: Mapping[str, Callable[[], None]]) -> None:
    """Run every step though one fails, and raise the first error in the end.

    Without S3, Glue or the JVM none can run: that error is raised at once.
    """
    failures: list[Exception] = []
    for name, step in steps.items():
        try:
            step()
        except Exception as error:
            if cause_of(error, *_NOT_OF_THE_TABLE) is not None:
                raise
            log.error("%s failed", name, exc_info=error)
            failures.append(error)
    if failures:
        raise failures[0]
