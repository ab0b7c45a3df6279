"""Polls of a running lake outside their schedules: of new tables, and for a comparison."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from cdclake import naming
from cdclake.jobs.control.poll_state import read_poll
from cdclake.jobs.verify.not_arrived import NotArrived
from cdclake.jobs.verify.poll_wait import failed_polls
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.spark_jobs import run_job, start_over
from cdclake.plan import Plan, Table

_PAUSE_S = 2.0


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


def poll_now(
    lake: LocalLake, tables: Collection[Table], meanwhile: Callable[[], None]
) -> Mapping[str, NotArrived]:
    """Poll these tables, as a `Wait` of `verify`; return those that failed, with the error."""
    del meanwhile  # the poll waits for its job
    report = run_job(lake, naming.POLL_JOB, [table.name for table in tables])
    return failed_polls(report["tables"])


@contextmanager
def repeated_polls(lake: LocalLake, tables: Collection[Table]) -> Iterator[None]:
    """Poll these tables again and again during the block, for a job that waits for polls.

    Each round of its comparison waits for a poll that has begun since it read the source. A poll
    that fails leaves its reason for that wait.
    """
    names, ended = [table.name for table in tables], threading.Event()

    def poll() -> None:
        while not ended.wait(_PAUSE_S):
            start_over(lake, naming.POLL_JOB, names).process.wait()

    polling = threading.Thread(target=poll, name="polls", daemon=True)
    if names:
        polling.start()
    try:
        yield
    finally:
        ended.set()
        if names:
            polling.join()
