"""Report of a job, by table: a JSON object in S3. The CLI shows it, the console links to it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from cdclake import naming
from cdclake.errors import CdcError, RulesFailed
from cdclake.job_advance import JobAdvance
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.iceberg.error_policy import hold_reason, passing_cause
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.jvm.java import each
from cdclake.metrics import FAILED_TABLES, SMALL_FILES, SNAPSHOTS, Metric
from cdclake.plan import Plan
from cdclake.quality_rule import FailedRule

log = logging.getLogger("cdclake.job")

_LARGE_FILE_BYTES = 128 * 1024 * 1024


class JobSubject(Protocol):
    """Table, Hudi copy or quarantine that a job works on."""

    @property
    def name(self) -> str:
        """The name in the report."""

    @property
    def stored(self) -> Sequence[str]:
        """The names of its Iceberg tables."""


@dataclass(frozen=True, slots=True)
class Size:
    """Files, bytes and snapshots of a table at one point in time, from its metadata."""

    files: int
    bytes: int
    snapshots: int


_UNKNOWN = Size(0, 0, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReport:
    """Line of the report for one table."""

    table: str
    seconds: float
    rows_applied: int
    files_before: int
    files_after: int
    bytes_before: int
    bytes_after: int
    snapshots_before: int
    snapshots_after: int
    error: str | None = None
    will_pass: bool = False  # a service failed: another try may succeed
    failed_rules: tuple[FailedRule, ...] = ()


def size_of(lake: LakeTables, names: Sequence[str]) -> Size:
    """Return the size of these Iceberg tables together; those that do not exist yet have none."""
    files = size = snapshots = 0
    for name in names:
        if not lake.exists(name):
            continue
        loaded = lake.load(name)
        snapshots += sum(1 for _ in each(loaded.snapshots()))
        current = loaded.currentSnapshot()
        if current is not None:
            summary = current.summary()
            files += int(summary.getOrDefault("total-data-files", "0"))
            files += int(summary.getOrDefault("total-delete-files", "0"))
            size += int(summary.getOrDefault("total-files-size", "0"))
    return Size(files, size, snapshots)


def report_table(lake: LakeTables, table: JobSubject, work: Callable[[], int]) -> TableReport:
    """Run `work`, which returns the number of applied rows; report its error and continue.

    Raises an error that concerns more than this table.
    """
    started = time.monotonic()
    before: Size | None = None
    applied, error, will_pass = 0, None, False
    failed_rules: tuple[FailedRule, ...] = ()
    try:
        before = size_of(lake, table.stored)
        applied = work()
        after = size_of(lake, table.stored)
    except Exception as failure:
        named = {"table": table.name}
        log.warning("table %s failed", table.name, exc_info=failure, extra=named)
        will_pass = passing_cause(failure) is not None
        error = _told(table.name, failure)
        failed_rules = failure.failed if isinstance(failure, RulesFailed) else ()
        after = _size_after_failure(lake, table, before or _UNKNOWN)
    before = before or after
    return TableReport(
        table=table.name,
        seconds=round(time.monotonic() - started, 3),
        rows_applied=applied,
        files_before=before.files,
        files_after=after.files,
        bytes_before=before.bytes,
        bytes_after=after.bytes,
        snapshots_before=before.snapshots,
        snapshots_after=after.snapshots,
        error=error,
        will_pass=will_pass,
        failed_rules=failed_rules,
    )


def _size_after_failure(lake: LakeTables, table: JobSubject, before: Size) -> Size:
    """Return the table's size, which the failed work may have changed; `before` if unreadable."""
    try:
        return size_of(lake, table.stored)
    except Exception as failure:
        log.warning("the size of %s could not be read", table.name, exc_info=failure)
        return before


def _told(table: str, failure: Exception) -> str:
    held = hold_reason(table, failure)
    if held is None and not isinstance(failure, CdcError):
        raise failure
    return held or str(failure)


def failed_tables(report: Mapping[str, Any]) -> dict[Metric, float]:
    """Count the failed tables of a report, as a metric."""
    return {FAILED_TABLES: sum(line["error"] is not None for line in report["tables"])}


def worst_sizes(plan: Plan, reports: Sequence[TableReport]) -> dict[Metric, float]:
    """Return the greatest numbers of small files and of snapshots among maintained tables.

    Small files are those that a table has beyond what its bytes need. Both are metrics.
    """
    maintained = {table.name for table in plan.all_tables if table.maintenance != "none"}
    maintained.add(naming.QUARANTINE)
    sizes = [each for each in reports if each.table in maintained]
    return {
        SMALL_FILES: max(
            (each.files_after - each.bytes_after // _LARGE_FILE_BYTES for each in sizes), default=0
        ),
        SNAPSHOTS: max((each.snapshots_after for each in sizes), default=0),
    }


class AdvanceNote:
    """Progress of a job run; threads may write it."""

    def __init__(self, control: ObjectStore, run: str | None, total: int) -> None:
        """Without the name of a run, nothing is written."""
        self._control, self._run, self._total = control, run, total
        self._reports: dict[str, TableReport] = {}
        self._lock = threading.Lock()

    def add(self, report: TableReport) -> None:
        """Write that another table is done."""
        if self._run is None:
            return
        with self._lock:
            self._reports[report.table] = report
            done = self._reports.values()
            advance = JobAdvance(
                done=len(done),
                total=self._total,
                rows=sum(each.rows_applied for each in done),
                bytes=sum(each.bytes_after for each in done),
                table=report.table,
            )
            try:
                self._control.write(naming.advance_name(self._run), advance.to_json())
            except Exception as failure:
                if passing_cause(failure) is None:
                    raise


def save_report(control: ObjectStore, run: str, tables: Sequence[TableReport]) -> dict[str, Any]:
    """Write the report of one job run below `reports/` and return it."""
    report = {
        "ok": all(table.error is None for table in tables),
        "tables": [asdict(table) for table in tables],
    }
    control.write(naming.report_name(run), report)
    return report


def error_report(error: CdcError) -> dict[str, Any]:
    """Return the report of a run that the error has ended."""
    told = {"code": error.code, "message": error.message, "remedy": error.remedy}
    return {"ok": False, "tables": [], "error": told}
