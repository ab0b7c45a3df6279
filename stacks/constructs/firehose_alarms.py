"""Alarms of Firehose's streams.

AWS publishes metrics per stream, and an alarm holds ten metrics: nine streams share an alarm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aws_cdk.aws_cloudwatch import TreatMissingData

from cdclake.config.deployment import Deployment
from cdclake.firehose.redrive_stream import redrive_stream
from cdclake.firehose.stream import CALL_TIMEOUT_S, DeliveryStream
from cdclake.puts.put_table import PutStream
from cdclake.stacks.constructs.alarm import LESS, AlarmSpec
from cdclake.stacks.constructs.deployment_metrics import HOUR, filled
from cdclake.stacks.constructs.firehose_metrics import (
    DeliveryMetrics,
    failed_calls,
    metrics_of,
    refused,
    running,
    throttled,
    unread,
)
from cdclake.web_logs.model import WebLogs

_MAX_FUNCTIONS_PER_ALARM = 4  # two metrics each; an alarm holds ten
# A call is repeated when it has ended: no batch has more that time out within an hour. The half,
# since Firehose's pause between two calls is not documented.
_MAX_FAILED_CALLS = 3600 // CALL_TIMEOUT_S // 2


def watches_of_delivery(deployment: Deployment, *, functions: Sequence[str]) -> Iterator[AlarmSpec]:
    """Yield the alarms of the deliveries; `functions` are the names of those Firehose calls."""
    parts = metrics_of(deployment.prefix, deployment.delivered)
    for streams in parts:
        yield from _of_streams(deployment, streams)
    limit = deployment.aws.monitoring.quarantined_per_hour
    yield AlarmSpec(
        name="delivery-refused",
        description=f"Firehose's function could not decode more than {limit} events within an"
        " hour. They are in S3; fix the cause and redrive them.",
        metric=refused(deployment.prefix),
        threshold=limit,
    )
    # A batch whose calls have all failed is in no metric by itself.
    retries = min(stream.function_retries for stream in deployment.delivered)
    most = min(retries, _MAX_FAILED_CALLS)
    for part, first in enumerate(range(0, len(functions), _MAX_FUNCTIONS_PER_ALARM), start=1):
        yield AlarmSpec(
            name="delivery-function",
            description=f"Within an hour more than {most} calls of a function that decodes rows for"
            f" Firehose failed or were throttled. After {retries} retries Firehose writes a batch"
            " to S3.",
            metric=failed_calls(functions[first : first + _MAX_FUNCTIONS_PER_ALARM], HOUR),
            threshold=most,
            part=part,
        )
    redrive = redrive_stream(deployment.plan)
    if deployment.delivers and redrive is not None:
        yield AlarmSpec(
            name="redrive",
            description="Within an hour redriven rows could not be appended. They are in S3"
            " again; fix the cause and repeat the redrive.",
            metric=DeliveryMetrics(deployment.prefix, [redrive], 1).failed(HOUR),
            threshold=0,
        )


def watches_of_web_server(deployment: Deployment, logs: WebLogs) -> Iterator[AlarmSpec]:
    """Yield the alarms of a web server: it runs, and its stream does not throttle it."""
    part = deployment.plan.web_logs.index(logs) + 1
    yield AlarmSpec(
        name="web-server",
        description=f"No task of the web server of {logs.name} is running.",
        metric=filled(running(deployment.prefix, logs.name), 0),
        threshold=1,
        beyond=LESS,
        periods=2,
        missing=TreatMissingData.BREACHING,
        part=part,
    )
    service = "Kinesis" if logs.stream.source == "kinesis" else "Firehose"
    description = (
        f"{service} throttles the requests of {logs.name}. The router buffers them in memory and"
        " loses them if its task ends."
    )
    yield _throttling(deployment, logs.stream, "web-throttled", description, part)


def watches_of_puts(deployment: Deployment, put: PutStream) -> Iterator[AlarmSpec]:
    """Yield the alarm that Firehose throttles the producers of an entry of `puts:`."""
    if put.stream.source == "direct_put":
        description = (
            f"Firehose throttles the records put for {put.name}. Producers have to repeat them."
        )
        part = deployment.plan.puts.index(put) + 1
        yield _throttling(deployment, put.stream, "puts-throttled", description, part)


def watches_of_kinesis(deployment: Deployment) -> Iterator[AlarmSpec]:
    """Yield the alarm of each stream from Kinesis, which deletes records that were not read."""
    limit = deployment.aws.monitoring.freshness_minutes
    streams = [each for each in deployment.plan.put_streams if each.source == "kinesis"]
    for part, stream in enumerate(streams, start=1):
        beyond = 60 * limit + stream.function_seconds + stream.buffer_seconds
        yield AlarmSpec(
            name="kinesis-lag",
            description=f"For an hour Firehose has been behind the Kinesis stream of {stream.name},"
            " or for three hours has read nothing although records were put.",
            metric=unread(deployment.prefix, stream.name, beyond),
            threshold=0,
            # CloudWatch has to retrieve the hours before the one that the expression compares.
            periods=3,
            breaching=1,
            part=part,
        )


def _throttling(
    deployment: Deployment, stream: DeliveryStream, name: str, description: str, part: int
) -> AlarmSpec:
    return AlarmSpec(
        name=name,
        description=description,
        metric=throttled(deployment.prefix, stream),
        threshold=0,
        periods=3,
        part=part,
    )


def _of_streams(deployment: Deployment, streams: DeliveryMetrics) -> Iterator[AlarmSpec]:
    limits = deployment.aws.monitoring
    yield AlarmSpec(
        name="delivery-late",
        description="Firehose has held records for longer than its buffering plus"
        f" {limits.freshness_minutes} minutes without appending them.",
        metric=streams.age(),
        threshold=limits.freshness_minutes * 60 + streams.collecting_seconds,
        periods=3,  # the newest one may have the points of other streams only
        breaching=2,
        part=streams.part,
    )
    if streams.of_kafka:
        yield AlarmSpec(
            name="delivery-lag",
            description=f"Firehose's consumer lag on a topic exceeds {limits.lag_records}"
            " records and is growing.",
            metric=streams.growing_lag(limits.lag_records),
            threshold=0,
            periods=6,
            part=streams.part,
        )
    yield AlarmSpec(
        name="delivery-failed",
        description="Within an hour Firehose could not append rows to their changelogs. They"
        " are in S3; fix the cause and redrive them. OK means only that no further rows failed.",
        metric=streams.failed(HOUR),
        threshold=0,
        part=streams.part,
    )
    yield AlarmSpec(
        name="delivery-calls",
        description="Within an hour a call of the function that makes rows for Firehose did not"
        " succeed, for instance since Lambda refused it as too large, which no metric of Lambda"
        " counts. Firehose repeats the call, and then writes its records to S3.",
        metric=streams.succeeded_calls(HOUR),
        threshold=1,
        beyond=LESS,
        part=streams.part,
    )
