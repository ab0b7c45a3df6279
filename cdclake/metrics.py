"""CloudWatch metrics and alarm topic of a deployment: the names that jobs and alarms use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

NAMESPACE = "cdclake"
DEPLOYMENT = "Deployment"  # dimension of every metric
JOB = "Job"  # dimension of the metrics per job
TABLE = "Table"  # dimension of the metrics per table


@dataclass(frozen=True, slots=True)
class Metric:
    """Metric with CloudWatch's name of its unit."""

    name: str
    unit: str = "Count"


# Published by the stream once a minute while it runs; freshness by a scheduled one at its end.
FRESHNESS = Metric("Freshness", "Seconds")  # age of the newest heartbeat in the lake
BATCH_AGE = Metric("BatchAge", "Seconds")  # time since the last batch ended
BATCH_SECONDS = Metric("BatchSeconds", "Seconds")  # duration of the last batch
BATCH_EVENTS = Metric("BatchEvents")  # events of the last batch
# Of the state that is behind its changelog longest, among those that the stream applies.
STATE_AGE = Metric("StateAge", "Seconds")
LAG = Metric("Lag")  # unread records of the topic with the most
# Also by each poll that quarantines rows.
QUARANTINED = Metric("Quarantined")  # events refused since the last publication
WITHHELD = Metric("Withheld")  # events that a rule has withheld since the last publication
STOPPED_TABLES = Metric("StoppedTables")

# Written by the stream for each table, with `aws: monitoring: {table_metrics: true}`.
TABLE_FRESHNESS = Metric("TableFreshness", "Seconds")  # of a table that streams
TABLE_STATE_AGE = Metric("TableStateAge", "Seconds")  # since the state is behind its changelog
TABLE_QUARANTINED = Metric("TableQuarantined")
TABLE_WITHHELD = Metric("TableWithheld")  # events that a rule has withheld since the table began
TABLE_STOPPED = Metric("TableStopped")
TABLE_VERIFIED_AGE = Metric("TableVerifiedAge", "Seconds")  # since it was last compared

# Published by a table job at its end.
FAILED_TABLES = Metric("FailedTables")
# Published by `maintain_tables` after all tables: the value of the worst table.
SMALL_FILES = Metric("SmallFiles")  # files beyond those that its bytes need
SNAPSHOTS = Metric("Snapshots")

# Published by `verify_tables` at the end of each comparison of all rows, also if it fails.
VERIFIED_TABLES = Metric("VerifiedTables")  # tables that are equal to the source

# Published by the connector keeper at each check.
CONNECTOR_RESTARTS = Metric("ConnectorRestarts")  # within the last hours
CONNECTOR_UPDATE_REFUSED = Metric("ConnectorUpdateRefused")  # 1: it runs with former settings

# Published by the source check.
CHANGED_RELATIONS = Metric("ChangedRelations")  # tables that are no longer those the lake read
NEW_COLUMNS = Metric("NewColumns")  # source columns that are neither declared nor excluded

# Published by the stream keeper at each check.
STREAM_RUNNING = Metric("StreamRunning")
STREAM_FAILURES = Metric("StreamFailures")
STREAM_GIVEN_UP = Metric("StreamGivenUp")


def metric_data(
    values: Mapping[Metric, float], dimensions: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return the `MetricData` of CloudWatch's PutMetricData; each value has these dimensions."""
    named = [{"Name": name, "Value": value} for name, value in dimensions.items()]
    return [
        {
            "MetricName": metric.name,
            "Dimensions": named,
            "Value": float(value),
            "Unit": metric.unit,
        }
        for metric, value in values.items()
    ]


def publish(cloudwatch: Any, values: Mapping[Metric, float], deployment: str) -> None:
    """Publish the values as metrics of the deployment; `cloudwatch` is a boto3 client."""
    data = metric_data(values, {DEPLOYMENT: deployment})
    cloudwatch.put_metric_data(Namespace=NAMESPACE, MetricData=data)


def alarm_topic_name(prefix: str) -> str:
    """Return the name of the topic of a deployment's alarms; no other deployment has it."""
    return f"{prefix}-alarms"
