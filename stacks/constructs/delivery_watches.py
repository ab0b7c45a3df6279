"""What is watched of Firehose's streams.

AWS has a figure for each stream, and an alarm looks at ten metrics: nine streams share an alarm.
"""

from __future__ import annotations

from collections.abc import Iterator

from cdclake.config.deployment import Deployment
from cdclake.redrive.stream import redrive_stream
from stacks.constructs.delivery_metrics import (
    DeliveryMetrics,
    failed_calls,
    metrics_of,
    refused,
)
from stacks.constructs.deployment_metrics import HOUR
from stacks.constructs.watch import Watch


def watches_of_delivery(deployment: Deployment, *, function: str) -> Iterator[Watch]:
    """`function` is the name of the one that makes the rows."""
    parts = metrics_of(deployment.prefix, deployment.plan.deliveries)
    for streams in parts:
        yield from _of_streams(deployment, streams)
    limit = deployment.aws.monitoring.quarantined_per_hour
    yield Watch(
        name="delivery-refused",
        says=f"more than {limit} events could not be made rows within an hour; they lie in S3",
        metric=refused(deployment.prefix),
        threshold=limit,
    )
    yield Watch(
        name="delivery-function",
        says="the function that makes rows fails or is throttled; what it was called with goes to"
        " S3 after some attempts",
        metric=failed_calls(function),
        threshold=0,
        periods=3,
    )
    redrive = redrive_stream(deployment.plan)
    assert redrive is not None  # there are streams
    yield Watch(
        name="redrive",
        says="within an hour redriven rows could not be appended either; they lie in S3 again",
        metric=DeliveryMetrics(deployment.prefix, [redrive], 1).failed(HOUR),
        threshold=0,
    )


def _of_streams(deployment: Deployment, streams: DeliveryMetrics) -> Iterator[Watch]:
    limits = deployment.aws.monitoring
    yield Watch(
        name="delivery-late",
        says=f"what Firehose holds is older than {limits.freshness_minutes} minutes beyond what it"
        " may collect",
        metric=streams.age(),
        threshold=limits.freshness_minutes * 60 + streams.collecting_seconds,
        periods=2,
        part=streams.part,
    )
    yield Watch(
        name="delivery-lag",
        says=f"more than {limits.lag_records} records of a topic are unread by Firehose, and they"
        " become more",
        metric=streams.growing_lag(limits.lag_records),
        threshold=0,
        periods=6,
        part=streams.part,
    )
    yield Watch(
        name="delivery-failed",
        says="within an hour rows could not be appended to their logs; they lie in S3",
        metric=streams.failed(HOUR),
        threshold=0,
        part=streams.part,
    )
