"""The comparison as a job: its arguments, report and metrics."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark.sql import SparkSession

from cdclake import naming
from cdclake.debezium.worker import SALT_KEY
from cdclake.erasure_register import ErasureRegister
from cdclake.errors import CdcError, ComponentFailed
from cdclake.firehose.erased_rows import ReadErased, RecentRegister
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
from cdclake.jobs.table_jobs.chosen_tables import chosen_tables
from cdclake.jobs.table_jobs.deployment_jobs import DeploymentJobs
from cdclake.jobs.table_jobs.table_reports import error_report
from cdclake.jobs.verify.catch_up import CatchUp
from cdclake.jobs.verify.firehose_offsets import delivered_offsets
from cdclake.jobs.verify.poll_wait import NextPoll, StartedPolls, with_polls
from cdclake.jobs.verify.report import Report
from cdclake.jobs.verify.rounds import Wait
from cdclake.jobs.verify.run import verify_tables
from cdclake.jobs.verify.spark_engine import SparkEngine
from cdclake.jobs.verify.topic_records import TopicRecords
from cdclake.metrics import FAILED_TABLES, VERIFIED_TABLES
from cdclake.plan import Plan, Table
from cdclake.postgres.catalog import SourceTable, TableId
from cdclake.postgres.new_columns import find_new_columns
from cdclake.postgres.widened import find_widened
from cdclake.source_notes import note_new_columns, note_widened, widening_warnings

_MAX_SILENCE = timedelta(minutes=15)
_WAIT_S = 600.0  # the stream may be one or two batches behind
# Runs with one of these do not replace the scheduled comparison, whose alarm counts the others.
_PARTIAL = frozenset({"tables", "sample", "reader"})

log = logging.getLogger("cdclake.verify")


def compare(
    spark: SparkSession, plan: Plan, control: ObjectStore, arguments: Mapping[str, str]
) -> Report:
    """Compare the chosen tables; raise CdcError if that is impossible.

    Types that the source has widened are noted first: the stream applies them, and they count. Its
    undeclared columns are noted, too.
    """
    brokers = brokers_of(arguments)
    with deployed_dsn(arguments) as dsn, TemporaryDirectory() as spill:
        plan = _with_noted(control, plan, source_tables(dsn, plan))
        reader = job_reader(spark, plan, Path(spill))
        tables = list(chosen_tables(plan, arguments.get("tables")))
        arrival = CatchUp(
            plan=plan,
            dsn=dsn,
            ends=lambda topics: offsets(spark, brokers, topics),
            progress=lambda: Progress.load(control),
            arrived=delivered_offsets(
                reader, plan, tables, TopicRecords(spark, brokers), _erased(control, arguments)
            ),
            wait_s=float(arguments.get("wait", default_wait_s(plan, tables))),
            obstacle=lambda: find_obstacle(plan, control, datetime.now(UTC)),
        )
        return verify_tables(
            plan,
            tables,
            dsn=dsn,
            salt=secret_value(arguments["mask_salt"], SALT_KEY) if "mask_salt" in arguments else "",
            reader=reader,
            wait=wait_with_jobs(arrival, control, arguments),
            sample=int(arguments["sample"]) if "sample" in arguments else None,
            deep="deep" in arguments,
            quarantined=lambda: quarantined_events(reader),
            engine=SparkEngine(spark, reader) if arguments.get("reader") == "spark" else None,
        )


def _erased(control: ObjectStore, arguments: Mapping[str, str]) -> ReadErased:
    register = ErasureRegister(control, lambda: secret_value(arguments["mask_salt"], SALT_KEY))
    return RecentRegister(register).read


def wait_with_jobs(arrival: CatchUp, control: ObjectStore, arguments: Mapping[str, str]) -> Wait:
    """Return the wait for changes, which runs the jobs of `--runs` for what a schedule would read.

    Without them, as on the local lake, it waits for the next polls.
    """
    runs = arguments.get("runs", "").split(",")
    prefix = arguments["JOB_NAME"].removesuffix(f"-{naming.VERIFY_JOB}")
    jobs = DeploymentJobs(prefix=prefix, starter=naming.VERIFY_JOB, control=control)
    if naming.STREAM_JOB in runs and arrival.plan.mode == "scheduled":
        arrival = replace(arrival, run_stream=jobs.run_stream)
    is_polling = naming.POLL_JOB in runs
    polls = StartedPolls(jobs) if is_polling else NextPoll(control, arrival.wait_s)
    return with_polls(arrival.wait, polls.wait)


def default_wait_s(plan: Plan, tables: Collection[Table]) -> float:
    """Return the time within which the tables' changes arrive, also from Firehose's buffers."""
    names = {table.name for table in tables}
    streams = [each for each in plan.deliveries if names.intersection(each.tables)]
    held = (each.function_seconds + each.buffer_seconds for each in streams)
    return _WAIT_S + max(held, default=0)


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


def _without_rows(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table's result without its examples: values of rows stay out of logs."""
    deep = line["deep"] and {**line["deep"], "first": []}
    return {**line, "first": [], "deep": deep}


def run(arguments: Mapping[str, str]) -> int:
    """Compare, write the report, and return the process's exit code."""
    control = ObjectStore(arguments["control"])
    plan = PlanWatcher(arguments["plan"], control).read()
    try:
        found = compare(open_session(arguments["JOB_NAME"]), plan, control, arguments)
        report, unequal = found.to_json(), sum(not table.ok for table in found.tables)
        equal = len(found.tables) - unequal
        if "reader" not in arguments:
            note_verified(control, found.verdicts())
    except CdcError as error:
        log.error("%s", error)
        report, unequal, equal = error_report(error), len(plan.all_tables), 0
    control.write(naming.report_name(arguments.get("run", naming.VERIFY_JOB)), report)
    for line in report["tables"]:
        log.info("%s", _without_rows(line))
    metrics = Metrics(arguments.get("metrics"), naming.VERIFY_JOB)
    values = {FAILED_TABLES: unequal}
    if _PARTIAL.isdisjoint(arguments):
        values[VERIFIED_TABLES] = equal
    metrics.publish(lambda: values)
    return 0 if report["ok"] else 1
