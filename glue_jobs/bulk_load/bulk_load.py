"""Bulk load of all tables as of one LSN, and its report."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from py4j.protocol import Py4JJavaError
from pyspark import inheritable_thread_target
from pyspark.errors import PySparkException

from cdclake import naming
from cdclake.errors import CdcError, TableError
from cdclake.iceberg.schemas import changes_schema, quarantine_schema, state_schema
from cdclake.jobs.bulk_load.connector_start import ConnectorStart, deployed_start
from cdclake.jobs.bulk_load.exported_snapshot import ExportedSnapshot, exported_snapshot
from cdclake.jobs.bulk_load.load_source import LoadSource
from cdclake.jobs.bulk_load.source_reader import SourceRefused
from cdclake.jobs.bulk_load.table_load import TableLoad
from cdclake.jobs.control.leases import Leases
from cdclake.jobs.control.plan_watcher import PlanWatcher
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.object_storage import ObjectStorage
from cdclake.jobs.runtime.metrics import Metrics
from cdclake.jobs.runtime.session import open_session
from cdclake.jobs.table_jobs.table_reports import (
    AdvanceNote,
    TableReport,
    error_report,
    failed_tables,
    report_table,
    save_report,
)
from cdclake.plan import Plan, Table

MAX_CONCURRENT_TABLES = 4  # loading a small table is mostly waiting for S3 and the catalog

log = logging.getLogger("cdclake.load")


@dataclass(frozen=True, slots=True)
class BulkLoad:
    """Bulk load of all tables of a plan."""

    plan: Plan
    lake: LakeTables
    control: ObjectStore
    leases: Leases
    epoch: int
    start: ConnectorStart | None = None  # None: the caller starts the connector
    name: str | None = None  # of the job run

    def run(self, source: LoadSource, slot: str) -> list[TableReport]:
        """Load every table; return a report of each. Call it once per epoch, without a stream."""
        if self.start is None:
            return self._load_tables(source, slot)[0]
        self.start.begin(source)
        try:
            reports, lsn = self._load_tables(source, slot)
        except Exception:
            self.start.abandon(source)
            raise
        if any(report.error is not None for report in reports):
            self.start.abandon(source)
        else:
            self.start.complete(source, lsn)
        return reports

    def _load_tables(self, source: LoadSource, slot: str) -> tuple[list[TableReport], int]:
        """Load every table; return a report of each, and the LSN of their rows."""
        self._create_tables()
        self.leases.abandon_earlier_runs()
        with exported_snapshot(source, slot, self.plan.tables) as snapshot:
            self.control.write(naming.load_start(self.epoch), {"lsn": snapshot.lsn})
            refused: dict[str, int] = {}
            note = AdvanceNote(self.control, self.name, len(self.plan.tables))

            def load(table: Table) -> TableReport:
                work = partial(self._load, table, snapshot, refused)
                report = report_table(self.lake, table, work)
                note.add(report)
                return report

            on_thread = inheritable_thread_target(load)
            with ThreadPoolExecutor(MAX_CONCURRENT_TABLES) as threads:
                reports = list(threads.map(on_thread, self.plan.tables))
        self._note_refused(refused)
        return reports, snapshot.lsn

    def _create_tables(self) -> None:
        self.lake.create(quarantine_schema(self.plan))
        for table in self.plan.tables:
            for schema in (changes_schema(table, self.plan), state_schema(table, self.plan)):
                self.lake.create(schema)

    def _load(self, table: Table, snapshot: ExportedSnapshot, refused: dict[str, int]) -> int:
        try:
            named = snapshot.named_now(table)
            with self.leases.hold(table.name):
                loaded = TableLoad(self.lake, self.plan, named, snapshot, self.epoch).run()
        except (Py4JJavaError, PySparkException, SourceRefused) as error:
            log.exception("loading %s failed", table.name)
            raise TableError(
                table.name,
                f"its load failed: {_reason(error)}",
                "read the job's log, then start the load again (locally `cdclake up`)",
            ) from error
        refused[table.name] = loaded.faults
        return loaded.rows

    def _note_refused(self, refused: dict[str, int]) -> None:
        """Record faults for `status`; stop a table with too many, as the stream does."""
        progress = Progress.load(self.control)
        for name, count in refused.items():
            if progress.table(name).note_refused(count, self.plan.stop_table_after):
                log.error("table %s stopped: %s", name, progress.table(name).last_error)
        if any(refused.values()):
            progress.save(self.control)


def _reason(error: Exception) -> str:
    """Return PostgreSQL's reason, or the first line of the innermost cause."""
    refused = re.findall(rf"(?m)^[\w.]*{SourceRefused.__name__}: (.+)$", str(error))
    if refused:
        return str(refused[-1])
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return (causes or lines or [type(error).__name__])[-1 if causes else 0]


def _content(uri: str) -> str:
    return str(ObjectStorage().read(uri).to_pybytes(), "utf-8")


def run(arguments: Mapping[str, str]) -> int:
    """Load all tables, write the report and return the exit code."""
    control = ObjectStore(arguments["control"])
    plan = PlanWatcher(arguments["plan"], control).read()
    spark = open_session(arguments["JOB_NAME"])
    bulk = BulkLoad(
        plan,
        LakeTables(spark, plan.lake_database),
        control,
        Leases(control, naming.LOAD_JOB),
        int(arguments["epoch"]),
        deployed_start(spark, plan, control, arguments),
        arguments["run"],
    )
    source = LoadSource(
        spark,
        arguments["source"],
        arguments.get("mask_salt", ""),
        _content(arguments["authorities"]) if "authorities" in arguments else "",
    )
    try:
        report = save_report(control, arguments["run"], bulk.run(source, arguments["slot"]))
    except CdcError as error:
        log.error("%s", error)
        if bulk.start is not None:  # locally the log has the reason
            control.write(naming.report_name(arguments["run"]), error_report(error))
        return 1
    metrics = Metrics(arguments.get("metrics"), naming.LOAD_JOB)
    metrics.publish(lambda: failed_tables(report))
    return 0 if report["ok"] else 1
