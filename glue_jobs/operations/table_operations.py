"""Replay, resume and resync as a job: ask the stream, and wait for what it says.

The stream does the work; this asks for it, and waits unless it is `resume`. A run that dies has
asked already: the next one waits for the same, or asks again if the connector was not asked yet.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cdclake import naming
from cdclake.errors import CdcError, ComponentFailed, InputError, TableError
from cdclake.jobs.control import requests
from cdclake.jobs.control.plan_watcher import PlanWatcher
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.requests import REPLAY, RESYNC
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.runtime.metrics import Metrics
from cdclake.jobs.table_jobs.table_reports import failed_tables
from cdclake.plan import Plan, Table

if TYPE_CHECKING:
    from cdclake.jobs.operations.deployed_backend import DeployedBackend

RESUME = "resume"
POLL_INTERVAL_S = 5.0
# A stream that is just starting comes to it, too; a large table is read for hours, and a run may
# take four by default.
TIMEOUTS_S = {REPLAY: 1800.0, RESYNC: 13000.0}

log = logging.getLogger("cdclake.operate")


@dataclass(frozen=True, slots=True)
class TableOperations:
    """What one run asks of the stream; only a resync needs anything else."""

    control: ObjectStore
    backend: DeployedBackend | None = None

    def replay(self, table: Table) -> dict[str, Any]:
        """Have quarantined events tried again, and wait; TableError if the table is stopped."""
        self._check_flowing(table)
        request = requests.request_replay(self.control, table.name)
        return requests.replay_result(self._outcome(table, REPLAY, request))

    def resume(self, table: Table) -> dict[str, Any]:
        """Have a stopped table read its gap and rejoin."""
        progress = Progress.load(self.control).table(table.name)
        stopped = requests.request_resume(self.control, table.name, progress)
        return {"did": "asked to rejoin" if stopped else "flows"}

    def resync(self, table: Table) -> dict[str, Any]:
        """Have the table read again and what the source does not have removed, and wait."""
        assert self.backend is not None
        self._rejoin_after_loss(table, self.backend)
        is_signalled = self.backend.is_signalled
        request = requests.resync_under_way(self.control, table.name, is_signalled)
        request = request or self._ask_resync(table, self.backend)
        return requests.resync_result(self._outcome(table, RESYNC, request))

    def _ask_resync(self, table: Table, backend: DeployedBackend) -> str:
        if backend.is_read(table):
            raise requests.being_read(table.name)
        request = requests.request_resync(
            self.control,
            table.name,
            epoch=Progress.load(self.control).epoch,
            known=backend.newest_position(table),
            notified=backend.notified(),
        )
        backend.signal(table, request)
        return request

    def _rejoin_after_loss(self, table: Table, backend: DeployedBackend) -> None:
        """Have a stopped table go on from what Kafka still keeps, and wait until it flows."""
        progress = Progress.load(self.control).table(table.name)
        if progress.state != "stopped":
            return
        if not backend.has_lost(table, progress.offsets):
            self._check_flowing(table)
        requests.request_skip_gap(self.control, table.name)
        deadline = time.monotonic() + TIMEOUTS_S[REPLAY]
        while Progress.load(self.control).table(table.name).state == "stopped":
            if time.monotonic() > deadline:
                self._check_flowing(table)
            time.sleep(POLL_INTERVAL_S)

    def _outcome(self, table: Table, verb: str, request: str) -> dict[str, Any]:
        deadline = time.monotonic() + TIMEOUTS_S[verb]
        while (told := requests.outcome(self.control, table.name, verb, request)) is None:
            self._check_flowing(table)
            if time.monotonic() > deadline:
                raise ComponentFailed(
                    f"{verb} of {table.name} was not done within {TIMEOUTS_S[verb]:.0f} s",
                    f"see whether the stream runs; another {verb} waits for the same request",
                    naming.STREAM_COMPONENT,
                )
            time.sleep(POLL_INTERVAL_S)
        return told

    def _check_flowing(self, table: Table) -> None:
        progress = Progress.load(self.control).table(table.name)
        if progress.state == "stopped":
            raise TableError(
                table.name,
                f"it is stopped: {progress.last_error}",
                "resume it, then run this again",
            )


def operate(operator: TableOperations, verb: str, tables: Sequence[Table]) -> dict[str, Any]:
    """The report of the verb over these tables; one table's trouble is its alone."""
    verbs: dict[str, Callable[[Table], dict[str, Any]]] = {
        REPLAY: operator.replay,
        RESUME: operator.resume,
        RESYNC: operator.resync,
    }
    if verb not in verbs:
        raise InputError(f"there is no verb {verb!r}", f"choose one of {', '.join(verbs)}")
    lines = [_line(table, verbs[verb]) for table in tables]
    return {"ok": all(line["error"] is None for line in lines), "tables": lines}


def _line(table: Table, work: Callable[[Table], dict[str, Any]]) -> dict[str, Any]:
    try:
        return {"table": table.name, "error": None, **work(table)}
    except CdcError as error:
        return {"table": table.name, "error": str(error), "did": f"nothing: {error}"}


def streamed_tables(plan: Plan, names: str | None) -> list[Table]:
    """The tables that `--tables a,b` names, or all that the stream writes.

    InputError for a name of none, or of one that another writes.
    """
    if names:
        return [plan.streamed(name) for name in names.split(",")]
    return [table for table in plan.tables if table.delivery == "stream"]


def run(arguments: Mapping[str, str]) -> int:
    """Ask, wait, and write the report; the process's exit code."""
    plan, verb = PlanWatcher(arguments["plan"]).read(), arguments["verb"]
    control = ObjectStore(arguments["control"])
    if verb == RESYNC and "tables" not in arguments:
        raise InputError("it is not said which tables are to be read again", "add --tables a,b")
    streamed = streamed_tables(plan, arguments.get("tables"))
    with ExitStack() as held:
        backend = None
        if verb == RESYNC:
            from cdclake.jobs.operations.deployed_backend import open_backend

            backend = held.enter_context(open_backend(plan, arguments))
        report = operate(TableOperations(control, backend), verb, streamed)
    control.write(naming.report_name(arguments.get("run", naming.OPERATE_JOB)), report)
    for line in report["tables"]:
        log.info("%s", line)
    metrics = Metrics(arguments.get("metrics"), naming.OPERATE_JOB)
    metrics.tell(lambda: failed_tables(report))
    return 0 if report["ok"] else 1
