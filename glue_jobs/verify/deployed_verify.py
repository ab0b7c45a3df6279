"""The comparison as a job: its arguments, report and metrics."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.debezium.worker import SALT_KEY
from cdclake.errors import CdcError, ComponentFailed
from cdclake.iceberg.widening import with_widened
from cdclake.jobs.control.last_verified import note_verified
from cdclake.jobs.control.plan_watcher import PlanWatcher
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.requests import pause_of
from cdclake.jobs.control.store import ObjectStore
from cdclake.jobs.reader.job_reader import job_reader
from cdclake.jobs.reader.quarantine_counts import quarantined_events
from cdclake.jobs.runtime.arguments import brokers_of
from cdclake.jobs.runtime.kafka import offsets
from cdclake.jobs.runtime.metrics import Metrics
from cdclake.jobs.runtime.secrets import secret_value
from cdclake.jobs.runtime.session import open_session
from cdclake.jobs.runtime.source import deployed_dsn, source_tables
from cdclake.jobs.table_jobs.table_reports import chosen_tables, error_report
from cdclake.jobs.verify.catch_up import CatchUp
from cdclake.jobs.verify.firehose_offsets import delivered_offsets
from cdclake.jobs.verify.poll_wait import NextPoll, with_polls
from cdclake.jobs.verify.report import Report
from cdclake.jobs.verify.run import verify_tables
from cdclake.jobs.verify.spark_engine import SparkEngine
from cdclake.metrics import FAILED_TABLES, VERIFIED_TABLES
from cdclake.plan import Plan
from cdclake.postgres.catalog import SourceTable, TableId
from cdclake.postgres.new_columns import find_new_columns
from cdclake.postgres.widened import find_widened
from cdclake.source_notes import note_new_columns, note_widened, widening_warnings

_MAX_SILENCE = timedelta(minutes=15)
_WAIT_S = "600"  # the stream may be one or two batches behind

log = logging.getLogger("cdclake.verify")


def compare(
    spark: SparkSession, plan: Plan, control: ObjectStore, arguments: Mapping[str, str]
) -> Report:
    """Compare the chosen tables; raise CdcError if that is impossible.

    Types that the source has widened are noted first: the stream applies them, and they count. Its
    undeclared columns are noted, too.
    """
    brokers = brokers_of(arguments)
    sample = arguments.get("sample")
    with deployed_dsn(arguments) as dsn, TemporaryDirectory() as spill:
        plan = _with_noted(control, plan, source_tables(dsn, plan))
        reader = job_reader(spark, plan, Path(spill))
        arrival = CatchUp(
            plan=plan,
            dsn=dsn,
            ends=lambda topics: offsets(spark, brokers, topics),
            progress=lambda: Progress.load(control),
            arrived=delivered_offsets(
                reader, plan, lambda topics: offsets(spark, brokers, topics, "earliest")
            ),
            wait_s=float(arguments.get("wait", _WAIT_S)),
            obstacle=lambda: find_obstacle(plan, control, datetime.now(UTC)),
        )
        return verify_tables(
            plan,
            list(chosen_tables(plan, arguments.get("tables"))),
            dsn=dsn,
            salt=secret_value(arguments["mask_salt"], SALT_KEY) if "mask_salt" in arguments else "",
            reader=reader,
            wait=with_polls(arrival.wait, NextPoll(control, arrival.wait_s).wait),
            sample=None if sample is None else int(sample),
            deep="deep" in arguments,
            quarantined=lambda: quarantined_events(reader),
            engine=SparkEngine(spark, reader) if arguments.get("reader") == "spark" else None,
        )


def _with_noted(control: ObjectStore, plan: Plan, actual: Mapping[TableId, SourceTable]) -> Plan:
    widened = find_widened(plan, actual)
    for warning in widening_warnings(plan, widened):
        log.warning("%s", warning)
    note_new_columns(control, plan, find_new_columns(plan, actual))
    note_widened(control, plan, widened)
    return with_widened(plan, widened)


def find_obstacle(plan: Plan, control: ObjectStore, now: datetime) -> CdcError | None:
    """Return an error if the stream is paused, or writes no progress, as it does after each batch.

    A scheduled stream writes none between its runs.
    """
    if all(table.delivery == "firehose" for table in plan.tables):
        return None
    if (pause := pause_of(control)) is not None:
        return pause
    progress = Progress.load(control)
    if not progress.written_at or plan.mode == "scheduled":
        return None
    last = datetime.fromisoformat(progress.written_at)
    if now - last < _MAX_SILENCE:
        return None
    return ComponentFailed(
        f"the stream has written no progress since {last.isoformat(timespec='seconds')}",
        f"start the job {naming.STREAM_JOB} if it does not run, and read its log",
        component=naming.STREAM_COMPONENT,
    )


def run(arguments: Mapping[str, str]) -> int:
    """Compare, write the report, and return the process's exit code."""
    control = ObjectStore(arguments["control"])
    plan = PlanWatcher(arguments["plan"], control).read()
    try:
        found = compare(open_session(arguments["JOB_NAME"]), plan, control, arguments)
        report, unequal = found.to_json(), sum(not table.ok for table in found.tables)
        equal = len(found.tables) - unequal
        if "reader" not in arguments:
            note_verified(control, {table.table: table.ok for table in found.tables})
    except CdcError as error:
        log.error("%s", error)
        report, unequal, equal = error_report(error), len(plan.all_tables), 0
    control.write(naming.report_name(arguments.get("run", naming.VERIFY_JOB)), report)
    for line in report["tables"]:
        log.info("%s", line)
    metrics = Metrics(arguments.get("metrics"), naming.VERIFY_JOB)
    metrics.tell(lambda: {FAILED_TABLES: unequal, VERIFIED_TABLES: equal})
    return 0 if report["ok"] else 1
