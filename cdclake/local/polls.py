"""Polls of a running lake outside their schedules: of new tables, and for a comparison."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from cdclake import naming
from cdclake.control_objects import PollProgress, poll_error_name, poll_name
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.verify.rounds import Wait
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.spark_jobs import run_job
from cdclake.plan import Plan, Table


def poll_new_tables(lake: LocalLake, before: Plan | None) -> dict[str, dict[str, Any]]:
    """Poll the tables that no poll has read since the plan `before`.

    Returns `polled` as the answer of `up` has it: the rows appended and the error by table. A
    paused lake polls nothing.
    """
    if lake.state.paused:
        return {}
    streamed = set() if before is None else {table.source for table in before.tables}
    new = [
        table.name
        for table in lake.plan.polled
        if table.source in streamed or read_poll(lake.control, table) is None
    ]
    lines = run_job(lake, naming.POLL_JOB, new)["tables"] if new else []
    rows = {line["table"]: {"rows": line["rows_applied"], "error": line["error"]} for line in lines}
    return {"polled": rows} if rows else {}


def waiting_for_polls(lake: LocalLake, wait: Wait) -> Wait:
    """Return a `Wait` that polls polled tables, and waits for the others as `wait` does."""

    def wait_for(tables: Collection[Table], meanwhile: Callable[[], None]) -> Mapping[str, str]:
        polled = [table for table in tables if table.polling is not None]
        failed = _poll(lake, polled) if polled else {}
        streamed = [table for table in tables if table.polling is None]
        return {**failed, **(wait(streamed, meanwhile) if streamed else {})}

    return wait_for


def _poll(lake: LocalLake, tables: Sequence[Table]) -> dict[str, str]:
    report = run_job(lake, naming.POLL_JOB, [table.name for table in tables])
    return {line["table"]: line["error"] for line in report["tables"] if line["error"]}


def read_poll(control: ObjectStore, table: Table) -> PollProgress | None:
    """Return the table's last poll; None before the first."""
    stored = control.read(poll_name(table.name))
    return None if stored is None else PollProgress.from_json(stored.content)


def read_poll_error(control: ObjectStore, table: Table) -> str | None:
    """Return why the table's last poll failed; None if it did not."""
    stored = control.read(poll_error_name(table.name))
    return None if stored is None else str(stored.content["error"])


def poll_shown(found: PollProgress, now: float) -> dict[str, Any]:
    """Return a poll as `status` shows it; ages in seconds at `now`, seconds since 1970."""
    return {
        "age_s": round(max(0.0, now - found.read_at / 1e6), 1),
        "swept_age_s": round(max(0.0, now - found.swept_at / 1e6), 1),
        "refused": found.refused,
    }
