"""The job `operate`: one verb over some tables of the deployment, and its report."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from cdclake import naming
from cdclake.control_objects import REPLAY, RESYNC
from cdclake.errors import CdcError, InputError
from cdclake.jobs.control.plan_watcher import PlanWatcher
from cdclake.jobs.control.requests import Answer
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.operations.deployed_backend import DeployedBackend
from cdclake.jobs.operations.table_operations import (
    RESUME,
    TableOperations,
    nothing_done,
    streamed_tables,
)
from cdclake.jobs.runtime.metrics import Metrics
from cdclake.jobs.table_jobs.chosen_tables import chosen_tables
from cdclake.jobs.table_jobs.table_reports import failed_tables
from cdclake.plan import Table

log = logging.getLogger("cdclake.operate")


def operate(
    operations: TableOperations, verb: str, tables: Sequence[Table], *, named: bool = True
) -> dict[str, Any]:
    """Run the verb for the tables; the failure of one is in its line only.

    A replay leaves stopped tables alone unless the tables are `named`.
    """
    verbs: dict[str, Callable[[], Mapping[str, Answer | CdcError]]] = {
        REPLAY: lambda: operations.replay_each(tables, skip_stopped=not named),
        RESUME: lambda: operations.resume(tables),
        RESYNC: lambda: {table.name: _resynced(operations, table) for table in tables},
    }
    if verb not in verbs:
        raise InputError(f"unknown verb {verb!r}", f"choose one of {', '.join(verbs)}")
    try:
        done = verbs[verb]()
    except CdcError as error:
        done = dict.fromkeys((table.name for table in tables), error)
    lines = [_line(table.name, done[table.name]) for table in tables]
    return {"ok": all(line["error"] is None for line in lines), "tables": lines}


def _resynced(operations: TableOperations, table: Table) -> Answer | CdcError:
    try:
        return operations.resync(table)
    except CdcError as error:
        return error


def _line(table: str, done: Answer | CdcError) -> dict[str, Any]:
    if isinstance(done, CdcError):
        return {"table": table, "error": str(done), **nothing_done(done)}
    return {"table": table, "error": None, **done}


def run(arguments: Mapping[str, str]) -> int:
    """Run the job, write its report, and return the exit code of the process."""
    control, verb = ObjectStore(arguments["control"]), arguments["verb"]
    plan = PlanWatcher(arguments["plan"], control).read()
    named = arguments["tables"].split(",") if arguments.get("tables") else []
    only_expired = arguments.get("expired") == "true"
    if verb == RESYNC and not named and not only_expired:
        raise InputError(
            "--tables is required for resync",
            "add --tables a,b, or --expired true for all tables whose events Kafka has lost",
        )
    tables = (
        list(chosen_tables(plan, arguments.get("tables")))
        if verb == RESUME  # a table of Firehose can be stopped, too
        else streamed_tables(plan, named)
    )
    with ExitStack() as resources:
        backend = DeployedBackend(plan, arguments, resources)
        operations = TableOperations(backend)
        if only_expired:
            tables = operations.incomplete(tables)
        report = operate(operations, verb, tables, named=bool(named))
    run_id = arguments.get("run", naming.OPERATE_JOB)
    backend.control.write(naming.report_name(run_id), report)
    for line in report["tables"]:
        log.info("%s", line)
    metrics = Metrics(arguments.get("metrics"), naming.OPERATE_JOB)
    metrics.publish(lambda: failed_tables(report))
    return 0 if report["ok"] else 1
