"""What is watched of Firehose's streams.

AWS has a figure for each stream, and an alarm looks at ten metrics: nine streams share an alarm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aws_cdk.aws_cloudwatch import TreatMissingData

from cdclake.config.deployment import Deployment
from cdclake.redrive.redrive_stream import redrive_stream
from cdclake.stacks.constructs.alarm import LESS, AlarmSpec
from cdclake.stacks.constructs.deployment_metrics import HOUR
from cdclake.stacks.constructs.firehose_metrics import (
    DeliveryMetrics,
    failed_calls,
    metrics_of,
    refused,
    running,
    throttled,
)
from cdclake.web_logs.model import WebLogs

_MAX_FUNCTIONS_PER_ALARM = 4  # of two metrics each, of the ten that an alarm looks at


def watches_of_delivery(deployment: Deployment, *, functions: Sequence[str]) -> Iterator[AlarmSpec]:
    """`functions` are the names of those that make the rows."""
    parts = metrics_of(deployment.prefix, deployment.delivered)
    for streams in parts:
        yield from _of_streams(deployment, streams)
    limit = deployment.aws.monitoring.quarantined_per_hour
    yield AlarmSpec(
        name="delivery-refused",
        description=f"more than {limit} events could not be made rows within an hour; they lie in"
        " S3",
        metric=refused(deployment.prefix),
        threshold=limit,
    )
    for part, first in enumerate(range(0, len(functions), _MAX_FUNCTIONS_PER_ALARM), start=1):
        yield AlarmSpec(
            name="delivery-function",
            description="a function that makes rows fails or is throttled; what it was called"
            " with goes"
            " to S3 after some attempts",
            metric=failed_calls(functions[first : first + _MAX_FUNCTIONS_PER_ALARM]),
            threshold=0,
            periods=3,
            part=part,
        )
    redrive = redrive_stream(deployment.plan)
    if deployment.delivers and redrive is not None:
        yield AlarmSpec(
            name="redrive",
            description="within an hour redriven rows could not be appended either; they lie in"
            " S3 again",
            metric=DeliveryMetrics(deployment.prefix, [redrive], 1).failed(HOUR),
            threshold=0,
        )


def watches_of_web_server(deployment: Deployment, logs: WebLogs) -> Iterator[AlarmSpec]:
    """That it runs, and that its stream takes what it sends."""
    part = deployment.plan.web_logs.index(logs) + 1
    yield AlarmSpec(
        name="web-server",
        description=f"no task of the web server of {logs.name} runs",
        metric=running(deployment.prefix, logs.name),
        threshold=1,
        beyond=LESS,
        periods=2,
        missing=TreatMissingData.BREACHING,
        part=part,
    )
    if logs.stream.source == "direct_put":
        yield AlarmSpec(
            name="web-throttled",
            description=f"Firehose takes requests of {logs.name} more slowly than they come; the"
            " router"
            " keeps them in memory",
            metric=throttled(deployment.prefix, logs.name),
            threshold=0,
            periods=3,
            part=part,
        )


def _of_streams(deployment: Deployment, streams: DeliveryMetrics) -> Iterator[AlarmSpec]:
    limits = deployment.aws.monitoring
    yield AlarmSpec(
        name="delivery-late",
        description=f"what Firehose holds is older than {limits.freshness_minutes} minutes beyond"
        " what it"
        " may collect",
        metric=streams.age(),
        threshold=limits.freshness_minutes * 60 + streams.collecting_seconds,
        periods=2,
        part=streams.part,
    )
    if streams.of_kafka:
        yield AlarmSpec(
            name="delivery-lag",
            description=f"more than {limits.lag_records} records of a topic are unread by"
            " Firehose, and"
            " they become more",
            metric=streams.growing_lag(limits.lag_records),
            threshold=0,
            periods=6,
            part=streams.part,
        )
    yield AlarmSpec(
        name="delivery-failed",
        description="within an hour rows could not be appended to their logs; they lie in S3",
        metric=streams.failed(HOUR),
        threshold=0,
        part=streams.part,
    )
