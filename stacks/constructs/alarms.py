"""The alarms of a deployment. An alarm has the name of its runbook.

No alarm is per table: 500 tables have as many alarms as one, except for Firehose's streams.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aws_cdk.aws_cloudwatch import TreatMissingData

from cdclake import metrics, naming
from cdclake.config.aws_model import CreatedSource
from cdclake.config.deployment import Deployment
from cdclake.config.kafka_model import CreatedKafka
from cdclake.connectors.declared import DeclaredConnector
from cdclake.debezium.topics import RETENTION_DAYS
from cdclake.schedule_times import longest_days
from cdclake.stacks.constructs.alarm import LESS, AlarmSpec
from cdclake.stacks.constructs.deployment_metrics import DAY, HOUR, DeploymentMetrics, filled
from cdclake.stacks.constructs.firehose_alarms import (
    watches_of_delivery,
    watches_of_kinesis,
    watches_of_puts,
    watches_of_web_server,
)
from cdclake.stacks.constructs.job_alarms import failure_window, watches_of_jobs
from cdclake.stream_keeping import (
    FAILURES_TO_ALARM,
    MAX_PAUSE_MINUTES,
    SILENT_CHECKS,
    SILENT_MINUTES,
)

_GIB = 1024**3


def watches(
    deployment: Deployment, *, failed_queue: str | None, functions: Sequence[str]
) -> Iterator[AlarmSpec]:
    """Yield the alarms of this deployment's parts, from the source to the lake.

    Args:
        deployment: whose parts are monitored.
        failed_queue: name of the schedules' dead-letter queue; None without jobs.
        functions: names of the functions that Firehose calls.
    """
    known = DeploymentMetrics(deployment.prefix)
    if deployment.plan.tables:
        yield from _of_way_to_lake(deployment, known)
    if functions:
        yield from watches_of_delivery(deployment, functions=functions)
    for logs in deployment.plan.web_logs:
        yield from watches_of_web_server(deployment, logs)
    for put in deployment.plan.puts:
        yield from watches_of_puts(deployment, put)
    yield from watches_of_kinesis(deployment)
    if failed_queue is not None:
        yield from watches_of_jobs(deployment, known, failed_queue)


def _of_way_to_lake(deployment: Deployment, known: DeploymentMetrics) -> Iterator[AlarmSpec]:
    source, kafka = deployment.aws.source.declared, deployment.aws.kafka.declared
    if isinstance(source, CreatedSource):
        yield from _of_source(deployment, source, known)
    yield _of_relations(known)
    if deployment.plan.new_columns != "ignore":
        yield _of_new_columns(known)
    if deployment.aws.connector == "on":
        yield from _of_connector(known)
    for connector in deployment.sinks:
        yield _of_declared_connector(deployment, known, connector)
    if isinstance(kafka, CreatedKafka) and not kafka.is_express:
        yield _of_kafka(deployment, known)
    if deployment.aws.stream == "on":
        yield from _of_stream(deployment, known)
    if deployment.plan.mode == "always_on":
        yield from _of_keeper(known)
    elif deployment.aws.stream == "on":
        yield from _of_scheduled_stream(deployment, known)


def _of_source(
    deployment: Deployment, source: CreatedSource, known: DeploymentMetrics
) -> Iterator[AlarmSpec]:
    yield _of_slot(deployment, source, known)
    if source.engine == "rds":  # Aurora's volume grows by itself
        yield _of_storage(deployment, source, known)


def _of_slot(deployment: Deployment, source: CreatedSource, known: DeploymentMetrics) -> AlarmSpec:
    percent, most = deployment.aws.monitoring.slot_wal_percent, source.slot_wal_gb
    if source.engine == "rds":
        description = (
            f"The replication slot retains more than {percent} % of its {most} GB WAL limit. At"
            " the limit PostgreSQL invalidates it, and the lake needs a new snapshot."
        )
    else:
        description = (
            f"The source keeps more than {percent} % of {most} GB of WAL. cdclake sets no limit"
            " on Aurora: its volume grows, and is billed, until the connector has read the WAL."
        )
    return AlarmSpec(
        name="slot-lag",
        description=description,
        metric=known.slot_lag(source),
        threshold=most * _GIB * percent / 100,
        periods=2,
    )


def _of_storage(
    deployment: Deployment, source: CreatedSource, known: DeploymentMetrics
) -> AlarmSpec:
    limits = deployment.aws.monitoring
    return AlarmSpec(
        name="free-storage",
        description=f"Less than {limits.free_storage_percent} % of {source.storage_gb} GB is"
        " free on the source's disk. A full disk stops the source.",
        metric=known.source(source, "FreeStorageSpace", "Minimum"),
        threshold=source.storage_gb * _GIB * limits.free_storage_percent / 100,
        beyond=LESS,
        periods=3,
    )


def _of_relations(known: DeploymentMetrics) -> AlarmSpec:
    return AlarmSpec(
        name="changed-relations",
        description="A table of the source was dropped, renamed, created again or rewritten, its"
        " key moved or its partitions changed: the lake lacks rows or keeps stale ones. Or the"
        " source could not be checked for two hours.",
        metric=filled(known.own(metrics.CHANGED_RELATIONS, "Maximum", period=HOUR), 1),
        threshold=0,
        periods=2,
        missing=TreatMissingData.BREACHING,
    )


def _of_new_columns(known: DeploymentMetrics) -> AlarmSpec:
    return AlarmSpec(
        name="new-columns",
        description="The source has columns that the pipeline file neither declares nor excludes."
        " They do not reach Kafka; under `new_columns: stop` their tables are stopped.",
        metric=known.own(metrics.NEW_COLUMNS, "Maximum", period=HOUR),
        threshold=0,
    )


def _of_connector(known: DeploymentMetrics) -> Iterator[AlarmSpec]:
    yield AlarmSpec(
        name="connector",
        description="No connector task is running: the source is not read, and the slot retains"
        " WAL.",
        metric=filled(known.connector("RunningTaskCount", "Minimum"), 0),
        threshold=1,
        beyond=LESS,
        periods=2,
        missing=TreatMissingData.BREACHING,
    )
    yield AlarmSpec(
        name="connector-update",
        description="MSK Connect refused the newest update of the connector or of a sink, which"
        " runs with its former settings: a new table or column is not read or written. Or the"
        f" connector keeper was silent for {SILENT_MINUTES} minutes: it restarts no failed task.",
        metric=filled(known.own(metrics.CONNECTOR_UPDATE_REFUSED, "Maximum"), 1),
        threshold=0,
        periods=SILENT_CHECKS,
        missing=TreatMissingData.BREACHING,
    )


def _of_declared_connector(
    deployment: Deployment, known: DeploymentMetrics, connector: DeclaredConnector
) -> AlarmSpec:
    return AlarmSpec(
        name="declared-connector",
        description=f"A task of the connector {connector.name} has failed, or none is running. The"
        " stream and the lake's other tables are not affected.",
        metric=known.tasks_of(connector.name),
        threshold=1,
        beyond=LESS,
        periods=2,
        missing=TreatMissingData.BREACHING,
        part=deployment.plan.connectors.index(connector) + 1,
    )


def _of_kafka(deployment: Deployment, known: DeploymentMetrics) -> AlarmSpec:
    percent = deployment.aws.monitoring.kafka_disk_percent
    return AlarmSpec(
        name="kafka-disk",
        description=f"A Kafka broker's disk usage exceeds {percent} %. A full disk rejects"
        " changes.",
        metric=known.fullest_kafka_disk(),
        threshold=percent,
        periods=3,
    )


def _of_stream(deployment: Deployment, known: DeploymentMetrics) -> Iterator[AlarmSpec]:
    """Yield the stream's alarms.

    An always-on stream's missing freshness is an alarm, too. A scheduled one publishes freshness
    and stopped tables at the end of each run: these alarms keep their state between runs.
    """
    limits = deployment.aws.monitoring
    always = deployment.plan.mode == "always_on"
    yield AlarmSpec(
        name="freshness",
        description="The newest heartbeat in the lake is more than"
        f" {limits.freshness_minutes} minutes old: the lake does not follow the source.",
        metric=known.own(metrics.FRESHNESS, "Maximum"),
        threshold=limits.freshness_minutes * 60,
        periods=2 if always else 1,
        missing=TreatMissingData.BREACHING if always else TreatMissingData.IGNORE,
    )
    yield AlarmSpec(
        name="lag",
        description=f"The stream's consumer lag on a topic exceeds {limits.lag_records} records"
        " and is growing.",
        metric=known.growing_lag(limits.lag_records),
        threshold=0,
        periods=6,
    )
    yield AlarmSpec(
        name="quarantine",
        description=f"More than {limits.quarantined_per_hour} events were quarantined within an"
        " hour.",
        metric=known.own(metrics.QUARANTINED, "Sum", period=HOUR),
        threshold=limits.quarantined_per_hour,
    )
    yield AlarmSpec(
        name="stopped-table",
        description="At least one table is stopped; the others flow. Resume it before its"
        f" events expire from Kafka, {RETENTION_DAYS} days after they were written.",
        metric=known.own(metrics.STOPPED_TABLES, "Maximum"),
        threshold=0,
        missing=TreatMissingData.NOT_BREACHING if always else TreatMissingData.IGNORE,
    )


def _of_keeper(known: DeploymentMetrics) -> Iterator[AlarmSpec]:
    yield AlarmSpec(
        name="keeper-gave-up",
        description=f"The stream failed {FAILURES_TO_ALARM} times in a row or more, and the stream"
        f" keeper continues to start it, with pauses of up to {MAX_PAUSE_MINUTES} minutes; or an"
        " earlier run cannot be stopped. Fix the cause.",
        metric=known.own(metrics.STREAM_GIVEN_UP, "Maximum"),
        threshold=0,
    )
    yield AlarmSpec(
        name="keeper-silent",
        description=f"No heartbeat from the stream keeper for {SILENT_MINUTES} minutes: a stream"
        " that ends is not restarted.",
        metric=filled(known.own(metrics.STREAM_RUNNING, "SampleCount"), 0),
        threshold=1,
        beyond=LESS,
        periods=SILENT_CHECKS,
        missing=TreatMissingData.BREACHING,
    )


def _of_scheduled_stream(deployment: Deployment, known: DeploymentMetrics) -> Iterator[AlarmSpec]:
    """Yield the alarms of runs that fail, and of runs that do not end: no keeper reports them.

    The second one is on while Kafka still has the events, also under a schedule of a week.
    """
    schedule = deployment.plan.schedules["apply"]
    period, within = failure_window([schedule])
    yield AlarmSpec(
        name="stream-failed",
        description=f"Within {within} a scheduled run of the stream failed: the lake is as old as"
        " its last run that succeeded.",
        metric=known.failed_runs(naming.STREAM_JOB, period),
        threshold=0,
    )
    days = min(longest_days(schedule) + 1, RETENTION_DAYS - 1)
    yield AlarmSpec(
        name="stream-overdue",
        description=f"No scheduled run of the stream has reported the lake's freshness for {days}"
        f" days. Kafka deletes unread events {RETENTION_DAYS} days after they were written.",
        metric=filled(known.own(metrics.FRESHNESS, "SampleCount", period=DAY), 0),
        threshold=1,
        beyond=LESS,
        periods=days,
        missing=TreatMissingData.BREACHING,
    )
