"""One dashboard that follows the data, hop by hop. No widget is per table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk.aws_cloudwatch import IMetric, IWidget
from constructs import Construct

from cdclake import metrics, naming
from cdclake.config.aws_model import CreatedSource
from cdclake.config.deployment import Deployment
from cdclake.config.kafka_model import CreatedKafka
from cdclake.config.source_metrics import WAL_ON_DISK
from cdclake.stacks.constructs.deployment_metrics import (
    FIVE_MINUTES,
    DeploymentMetrics,
    waiting_messages,
)
from cdclake.stacks.constructs.firehose_metrics import failed_calls, metrics_of, refused
from cdclake.stacks.constructs.glue_job import log_group_name

_WIDTH, _HEIGHT, _IN_A_ROW = 24, 6, 3
# CloudWatch's limit of one widget (its API reference, "Dashboard Body Structure").
_MAX_ALARMS_PER_WIDGET = 100


class Dashboard(Construct):
    """Dashboard with the deployment's name: the alarms, then the graphs of each hop."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        deployment: Deployment,
        alarms: Sequence[cloudwatch.IAlarm],
        failed_queue: str | None,
        functions: Sequence[str],
    ) -> None:
        """Add the dashboard.

        Args:
            scope: the stack.
            construct_id: id within the stack.
            deployment: whose parts are shown.
            alarms: shown with their states.
            failed_queue: name of the schedules' dead-letter queue; None without jobs.
            functions: names of the functions that Firehose calls.
        """
        super().__init__(scope, construct_id)
        known = DeploymentMetrics(deployment.prefix)
        graphs: list[IWidget] = []
        if failed_queue is not None:
            graphs += _to_kafka(deployment, known)
            graphs += _through_the_stream(known, deployment.prefix)
        if functions:
            graphs += _through_firehose(deployment, functions)
        if failed_queue is not None:
            graphs += _upkeep(known, failed_queue)
        rows = [graphs[at : at + _IN_A_ROW] for at in range(0, len(graphs), _IN_A_ROW)]
        widgets = [*_states(alarms), *rows]
        cloudwatch.Dashboard(self, "Dashboard", dashboard_name=deployment.prefix, widgets=widgets)


def _states(alarms: Sequence[cloudwatch.IAlarm]) -> Iterator[list[IWidget]]:
    """Yield rows of a widget each with the states of as many alarms as it may show."""
    for at in range(0, len(alarms), _MAX_ALARMS_PER_WIDGET):
        shown = alarms[at : at + _MAX_ALARMS_PER_WIDGET]
        yield [cloudwatch.AlarmStatusWidget(title="Alarms", alarms=shown, width=_WIDTH)]


def _to_kafka(deployment: Deployment, known: DeploymentMetrics) -> Iterator[IWidget]:
    """Yield graphs of the created parts; existing ones are on their owners' dashboards."""
    source, kafka = deployment.aws.source.declared, deployment.aws.kafka.declared
    if isinstance(source, CreatedSource):
        lag = known.slot_lag(source)
        if source.engine == "rds":
            on_disk = known.source(source, WAL_ON_DISK, "Maximum")
            yield _graph("Source: WAL retained by the slot", lag, on_disk)
            yield _graph("Source: free disk", known.source(source, "FreeStorageSpace", "Minimum"))
        else:
            yield _graph("Source: WAL on disk", lag)
    yield _graph(
        "Source: changed relations and new columns",
        known.own(metrics.CHANGED_RELATIONS, "Maximum"),
        known.own(metrics.NEW_COLUMNS, "Maximum"),
    )
    yield _graph(
        "Connector: tasks",
        known.connector("RunningTaskCount", "Minimum"),
        known.connector("ErroredTaskCount", "Maximum"),
        known.own(metrics.CONNECTOR_RESTARTS, "Maximum"),
        known.own(metrics.CONNECTOR_UPDATE_REFUSED, "Maximum"),
    )
    yield _graph(
        "Connector: CPU and memory, %",
        known.connector("CpuUtilization", "Maximum"),
        known.connector("MemoryUtilization", "Maximum"),
    )
    if isinstance(kafka, CreatedKafka) and not kafka.is_express:
        yield _graph("Kafka: fullest disk, %", known.fullest_kafka_disk())


def _through_the_stream(known: DeploymentMetrics, prefix: str) -> Iterator[IWidget]:
    yield _graph("Stream: consumer lag, records", known.own(metrics.LAG, "Maximum"))
    yield _graph(
        "Stream: batches",
        known.own(metrics.BATCH_AGE, "Maximum"),
        known.own(metrics.BATCH_SECONDS, "Maximum"),
    )
    yield _graph("Stream: events per batch", known.own(metrics.BATCH_EVENTS, "Average"))
    yield _graph(
        "Lake: freshness",
        known.own(metrics.FRESHNESS, "Maximum"),
        known.own(metrics.STATE_AGE, "Maximum"),
    )
    yield _graph(
        "Lake: quarantined and withheld events",
        known.own(metrics.QUARANTINED, "Sum"),
        known.own(metrics.WITHHELD, "Sum"),
    )
    yield _graph("Lake: stopped tables", known.own(metrics.STOPPED_TABLES, "Maximum"))
    yield _stopped_tables(log_group_name(prefix, naming.STREAM_JOB))


def _through_firehose(deployment: Deployment, functions: Sequence[str]) -> Iterator[IWidget]:
    parts = list(metrics_of(deployment.prefix, deployment.delivered))
    of_kafka = [each.lag() for each in parts if each.of_kafka]
    if of_kafka:
        yield _graph("Delivery: consumer lag, records", *of_kafka)
    yield _graph("Delivery: oldest record in Firehose", *(each.age() for each in parts))
    yield _graph("Delivery: appended rows", *(each.appended() for each in parts))
    yield _graph("Delivery: failed rows", *(each.failed() for each in parts))
    yield _graph(
        "Delivery: rejected events, failed calls",
        refused(deployment.prefix),
        failed_calls(functions),
    )
    yield _graph("Delivery: share of successful calls", *(each.succeeded_calls() for each in parts))


def _stopped_tables(logs: str) -> IWidget:
    return cloudwatch.LogQueryWidget(
        title="Lake: stopped tables and reasons",
        log_group_names=[f"{logs}/output", f"{logs}/error"],
        query_lines=[
            "fields @timestamp, @message",
            "filter @message like /table .* (stopped: |processing failed; retried)/",
            "sort @timestamp desc",
            "limit 20",
        ],
        width=_WIDTH // _IN_A_ROW,
        height=_HEIGHT,
    )


def _upkeep(known: DeploymentMetrics, failed_queue: str) -> Iterator[IWidget]:
    yield _graph(
        "Lake: small files and snapshots (worst table)",
        known.own(metrics.SMALL_FILES, "Maximum", job=naming.MAINTAIN_JOB),
        known.own(metrics.SNAPSHOTS, "Maximum", job=naming.MAINTAIN_JOB),
    )
    jobs = (
        *(naming.APPLY_JOB, naming.MAINTAIN_JOB, naming.REFRESH_JOB, naming.PUBLISH_JOB),
        *(naming.CHECK_JOB, naming.POLL_JOB, naming.VERIFY_JOB),
    )
    failures = [known.own(metrics.FAILED_TABLES, "Sum", job=job) for job in jobs]
    yield _graph("Jobs: failed tables, failed starts", *failures, waiting_messages(failed_queue))
    verified = known.own(metrics.VERIFIED_TABLES, "Maximum", job=naming.VERIFY_JOB)
    yield _graph("Lake: tables equal to the source", verified)
    yield _graph(
        "Keeper: stream running, consecutive failures",
        known.own(metrics.STREAM_RUNNING, "Minimum"),
        known.own(metrics.STREAM_FAILURES, "Maximum"),
    )


def _graph(title: str, *shown: IMetric) -> IWidget:
    return cloudwatch.GraphWidget(
        title=title,
        left=list(shown),
        width=_WIDTH // _IN_A_ROW,
        height=_HEIGHT,
        period=FIVE_MINUTES,
    )
