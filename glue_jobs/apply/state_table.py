"""Application of changes: the changelog rows that a state lacks, in as many commits as they need.

It is idempotent: every value keeps the greater position, the truncate floor drops truncated rows,
and the stamp records how far (by time of ingestion) the changelog is applied.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from cdclake.fail_points import reach
from cdclake.jobs.apply.declared_columns import check_declaration
from cdclake.jobs.apply.prepared_changes import apply_prepared
from cdclake.jobs.apply.rebuilt_state import ingested_through
from cdclake.jobs.apply.state_job import Answer, StateRequest, run_state_job
from cdclake.jobs.apply.state_update import StateUpdate
from cdclake.jobs.iceberg.commit_retry import retry_on_conflict
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.plan import Table


def apply_changes(update: StateUpdate, *, through: int) -> int:
    """Apply rows ingested up to `through` that the state lacks; return the number of events.

    Retries if its commit conflicts with another writer's or ends with an unknown outcome, which the
    state's stamp resolves. Raises CommitConflict if that persists.
    """
    events = 0
    while (request := update.request(through)) is not None:
        events += apply_request(update, request, through, None)
    return events


def apply_all(lake: LakeTables, table: Table) -> int:
    """Apply all rows that the state lacks, next to a stream; return the number of events.

    Raises TableError if there are any and the plan cannot hold the tables' columns.
    """
    through = ingested_through(lake, table)
    update = StateUpdate(lake, table)
    if update.applied().ingested >= through:
        return 0
    check_declaration(lake, table)
    return apply_changes(update, through=through)


def write_states(
    spark: SparkSession, requests: Mapping[str, StateRequest], updates: Mapping[str, StateUpdate]
) -> dict[str, Answer]:
    """Write the files of all requests that a task can fulfil, in one job; by table."""
    fitting = [r for name, r in requests.items() if updates[name].is_for_task(r)]
    return run_state_job(spark, fitting)


def apply_request(
    update: StateUpdate,
    request: StateRequest,
    through: int,
    written: Answer | None,
) -> int:
    """Commit one request's changes, which a job may have `written`; return the number of events.

    After a conflict both tables are loaded and the missing changes written again.
    """
    given: list[tuple[StateRequest, Answer | None]] = [(request, written)]

    def attempt() -> int:
        if given:
            return _apply(update, *given.pop())
        update.forget()
        following = update.request(through)
        return 0 if following is None else _apply(update, following, None)

    reach("before_state_commit")
    events = retry_on_conflict(update.table.name, attempt)
    reach("after_state_commit")
    return events


def _apply(update: StateUpdate, request: StateRequest, written: Answer | None) -> int:
    name, spark = update.table.name, update.lake.spark
    if written is None and update.is_for_task(request):
        written = run_state_job(spark, [request])[name]
    events = None if written is None else update.commit(request, written)
    return apply_prepared(update, request.pending) if events is None else events
