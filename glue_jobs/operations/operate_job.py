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
from cdclake.jobs.table_jobs.table_reports import failed_tables
from cdclake.plan import Table

log = logging.getLogger("cdclake.operate")


def operate(operations: TableOperations, verb: str, tables: Sequence[Table]) -> dict[str, Any]:
    """Run the verb for one table after the other; the failure of one is in its line only."""
    verbs: dict[str, Callable[[Table], Answer]] = {
        REPLAY: lambda table: operations.replay([table])[table.name],
        RESUME: lambda table: operations.resume([table])[table.name],
        RESYNC: operations.resync,
    }
    if verb not in verbs:
        raise InputError(f"unknown verb {verb!r}", f"choose one of {', '.join(verbs)}")
    lines = [_line(table, verbs[verb]) for table in tables]
    return {"ok": all(line["error"] is None for line in lines), "tables": lines}


def _line(table: Table, run_verb: Callable[[Table], Answer]) -> dict[str, Any]:
    try:
        return {"table": table.name, "error": None, **run_verb(table)}
    except CdcError as error:
        return {"table": table.name, "error": str(error), **nothing_done(error)}


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
    tables = streamed_tables(plan, named)
    with ExitStack() as resources:
        backend = DeployedBackend(plan, arguments, resources)
        operations = TableOperations(backend)
        if only_expired:
            tables = operations.incomplete(tables)
        report = operate(operations, verb, tables)
    run_id = arguments.get("run", naming.OPERATE_JOB)
    backend.control.write(naming.report_name(run_id), report)
    for line in report["tables"]:
        log.info("%s", line)
    metrics = Metrics(arguments.get("metrics"), naming.OPERATE_JOB)
    metrics.tell(lambda: failed_tables(report))
    return 0 if report["ok"] else 1
