"""Glue entry point: have the stream repair tables, as `cdclake replay` and `resume` do locally.

Arguments: --plan s3://.../plan.json --control s3://.../control --verb replay|resume [--tables a,b]
[--run ID: the report's name] [--metrics NAME under which CloudWatch is told]. The stream does the
work; this asks for it, and waits for a replay. A run that dies has asked already: the next one
waits for the same.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cdclake import naming
from cdclake.errors import CdcError, ComponentFailed, InputError, TableError
from cdclake.plan import Table
from glue_jobs.ingest import asking
from glue_jobs.ingest.plans import CurrentPlan
from glue_jobs.ingest.progress import Progress
from glue_jobs.ingest.repairs import REPLAY
from glue_jobs.runtime.arguments import read_arguments
from glue_jobs.runtime.metrics import Metrics
from glue_jobs.runtime.objects import ObjectStore
from glue_jobs.runtime.reports import chosen_tables, failed_tables

POLL_S = 5.0
REPLAY_S = 1800.0  # a stream that is just starting comes to it, too

log = logging.getLogger("cdclake.operate")


@dataclass(frozen=True, slots=True)
class Operator:
    """What one run asks of the stream."""

    control: ObjectStore

    def replay(self, table: Table) -> dict[str, Any]:
        """Have quarantined events tried again, and wait; TableError if the table is stopped."""
        self._check_flowing(table)
        request = asking.ask_replay(self.control, table.name)
        deadline = time.monotonic() + REPLAY_S
        while (told := asking.outcome(self.control, table.name, REPLAY, request)) is None:
            self._check_flowing(table)
            if time.monotonic() > deadline:
                raise ComponentFailed(
                    f"replay of {table.name} was not done within {REPLAY_S:.0f} s",
                    "see whether the stream runs; another replay waits for the same request",
                    naming.STREAM_COMPONENT,
                )
            time.sleep(POLL_S)
        return asking.tell_replayed(told)

    def resume(self, table: Table) -> dict[str, Any]:
        """Have a stopped table read its gap and rejoin."""
        progress = Progress.load(self.control).table(table.name)
        stopped = asking.ask_to_resume(self.control, table.name, progress)
        return {"did": "asked to rejoin" if stopped else "flows"}

    def _check_flowing(self, table: Table) -> None:
        progress = Progress.load(self.control).table(table.name)
        if progress.state == "stopped":
            raise TableError(
                table.name, f"it is stopped: {progress.last_error}", "resume it, then replay"
            )


def operate(control: ObjectStore, verb: str, tables: Sequence[Table]) -> dict[str, Any]:
    """The report of the verb over these tables; one table's trouble is its alone."""
    operator = Operator(control)
    verbs: dict[str, Callable[[Table], dict[str, Any]]] = {
        "replay": operator.replay,
        "resume": operator.resume,
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


def main() -> int:
    """Ask, wait, and write the report; the process's exit code."""
    logging.basicConfig(stream=sys.stdout, level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("botocore").setLevel(logging.WARNING)
    arguments = read_arguments(
        ["JOB_NAME", "plan", "control", "verb"], ["tables", "run", "metrics"]
    )
    plan = CurrentPlan(arguments["plan"]).read()
    control = ObjectStore(arguments["control"])
    streamed = [t for t in chosen_tables(plan, arguments.get("tables")) if t.delivery == "stream"]
    report = operate(control, arguments["verb"], streamed)
    control.write(naming.report_name(arguments.get("run", naming.OPERATE_JOB)), report)
    for line in report["tables"]:
        log.info("%s", line)
    metrics = Metrics(arguments.get("metrics"), naming.OPERATE_JOB)
    metrics.tell(lambda: failed_tables(report))
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
