"""The shop's business hours: continuous writes, with a `verify` running among them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cdclake.errors import ComponentFailed
from cdclake.local.demo.pipeline_stages import Hops
from cdclake.local.demo.proof import prove, verdict
from cdclake.local.demo.show import Show
from cdclake.local.demo.tasks import Task
from cdclake.local.demo.writer import Writer, Written
from cdclake.local.lake import stack
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.spark_jobs import run_job
from cdclake.local.process.supervisor_client import log_tail

CHECK_INTERVAL_S = 1.0
_VERIFY_AT = 0.4  # of the business hours


@dataclass(frozen=True, slots=True)
class Business:
    """Outcome of the business hours."""

    written: Written
    seconds: float
    while_writing: dict[str, Any]  # the answer of the `verify` that ran meanwhile


class _Aside:
    """Task that starts some time into the business hours and is displayed as a step."""

    def __init__(
        self, at: float, step: str, work: Callable[[], dict[str, Any]],
        describe: Callable[[dict[str, Any]], str],
    ) -> None:  # fmt: skip
        self._at, self._step, self._describe = at, step, describe
        self.task = Task(work)
        self.ended = False

    def advance(self, elapsed: float, show: Show) -> None:
        """Start the task when it is due, and end its step when it is done.

        An exception of the task is raised again.
        """
        if self.task.ident is None:
            if elapsed >= self._at:
                show.begin(self._step)
                self.task.start()
        elif self.task.done and not self.ended:
            show.end(self._step, self._describe(self.task.result()))
            self.ended = True


def do_business(
    lake: LocalLake, writer: Writer, hops: Hops, seconds: float, show: Show
) -> Business:
    """Write for `seconds`, or longer if `verify` has not finished by then."""
    verify = _Aside(_VERIFY_AT * seconds, "verify meanwhile", lambda: prove(lake), verdict)
    opened = time.monotonic()

    def advance() -> float:
        elapsed = time.monotonic() - opened
        _check(lake, writer)
        show.look(hops.look())
        verify.advance(elapsed, show)
        time.sleep(max(0.0, CHECK_INTERVAL_S - (time.monotonic() - opened - elapsed)))
        return time.monotonic() - opened

    step = "open for business"
    show.begin(step)
    writer.start()
    while advance() < seconds or not verify.ended:
        continue
    writer.stop()
    lasted = time.monotonic() - opened
    show.end(step, _business_done(writer.written))
    return Business(writer.written, lasted, verify.task.result())


def run_over_tables(lake: LocalLake, job: str) -> dict[str, Any]:
    """Run a job and return its report; raise ComponentFailed if it failed for a table."""
    report = run_job(lake, job, [])
    errors = [f"{line['table']}: {line['error']}" for line in report["tables"] if line["error"]]
    if errors:
        raise _failed(lake, job, "; ".join(errors))
    return report


def applied(report: dict[str, Any]) -> str:
    """Describe the number of changelog rows that the job applied."""
    return f"{sum(line['rows_applied'] for line in report['tables']):,} events"


def maintained(report: dict[str, Any]) -> str:
    """Describe the number of files before and after the job."""
    tables = report["tables"]
    before, after = (sum(line[f"files_{when}"] for line in tables) for when in ("before", "after"))
    return f"files {before} -> {after}"


def _check(lake: LocalLake, writer: Writer) -> None:
    """Raise ComponentFailed if a component is not running or the writer has ended."""
    for part in stack.components(lake.home):
        if part["state"] not in ("running", "starting"):
            raise _failed(lake, part["name"], f"{part['name']} is {part['state']}")
    if writer.error is not None:
        raise _failed(lake, "postgres", f"the shop's writer ended: {writer.error}")


def _failed(lake: LocalLake, component: str, message: str) -> ComponentFailed:
    log = lake.home.log(component)
    return ComponentFailed(message, f"read its log {log}", component, log_tail(log))


def _business_done(written: Written) -> str:
    return (
        f"{written.total:,} rows in {written.transactions:,} transactions,"
        f" {written.rolled_back} rolled back"
    )
