"""Metrics that a function has published to moto's CloudWatch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import boto3

from cdclake import metrics


def published(*names: str, deployment: str) -> dict[str, float]:
    """The greatest value of each metric in the last hour; those without a value are left out."""
    cloudwatch, now = boto3.client("cloudwatch"), datetime.now(UTC)
    found = {}
    for name in names:
        points = cloudwatch.get_metric_statistics(
            Namespace=metrics.NAMESPACE,
            MetricName=name,
            Dimensions=[{"Name": metrics.DEPLOYMENT, "Value": deployment}],
            StartTime=now - timedelta(hours=1),
            EndTime=now + timedelta(hours=1),
            Period=7200,
            Statistics=["Maximum"],
        )["Datapoints"]
        if points:
            [found[name]] = [each["Maximum"] for each in points]
    return found
