"""Control objects, tables and metrics of a deployment in moto."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3

from cdclake import metrics

PREFIX = "shop-dev"
DELIVERED = "  public.clicks: {key: [id], columns: {id: bigint}, delivery: firehose}\n"
POLLED = (
    "  public.rates:\n    key: [id]\n    columns: {id: bigint, at: timestamptz}\n"
    "    capture: {poll: {by: at, every: rate(1 hour), deletes: none}}\n"
)


def put(name: str, content: Any) -> None:
    """Write a control object."""
    boto3.client("s3").put_object(
        Bucket="state", Key=f"control/{name}", Body=json.dumps(content).encode()
    )


def add_table(name: str, *, rows: int, deleted: int) -> None:
    """Add an Iceberg table that has metadata and no files."""
    key = f"cdc_iceberg.db/{name}/metadata/1.json"
    summary = {"total-records": str(rows), "total-position-deletes": str(deleted)}
    snapshot = {"snapshot-id": 1, "timestamp-ms": 1, "summary": summary, "schema-id": 0}
    metadata = {
        "schemas": [{"schema-id": 0, "fields": []}],
        "current-schema-id": 0,
        "current-snapshot-id": 1,
        "snapshots": [snapshot],
        "snapshot-log": [{"timestamp-ms": 1, "snapshot-id": 1}],
    }
    boto3.client("s3").put_object(Bucket="warehouse", Key=key, Body=json.dumps(metadata).encode())
    table = {"Name": name, "Parameters": {"metadata_location": f"s3://warehouse/{key}"}}
    boto3.client("glue").create_table(DatabaseName="cdc_iceberg", TableInput=table)


def publish(
    name: str, value: float, namespace: str = metrics.NAMESPACE, *, age_s: float = 10
) -> None:
    """Have CloudWatch know a value that is a few seconds old, or older."""
    dimensions = [{"Name": metrics.DEPLOYMENT, "Value": PREFIX}]
    boto3.client("cloudwatch").put_metric_data(
        Namespace=namespace,
        MetricData=[
            {
                "MetricName": name,
                "Dimensions": dimensions,
                "Value": value,
                "Timestamp": datetime.now(UTC) - timedelta(seconds=age_s),
            }
        ],
    )
