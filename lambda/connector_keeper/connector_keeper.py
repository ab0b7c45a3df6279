"""Restart the connector when it or its task has failed: MSK Connect restarts neither.

Invoked every five minutes. The keeper is stateless: MSK Connect lists the connector's operations,
and so how often it was restarted. A restart reads the secrets again, so a changed password needs
nothing else.

Environment: NAME of the connector, DIMENSION of the metrics.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3

from cdclake import metrics
from cdclake.backoff import pause_after

log = logging.getLogger()
log.setLevel(logging.INFO)

FIRST_PAUSE_MINUTES, MAX_PAUSE_MINUTES = 5, 60
FORGOTTEN_AFTER = timedelta(hours=6)  # an earlier restart had another cause
_LOOKED_BACK = timedelta(minutes=10)
# Source: MSK Connect API Reference, ConnectorOperationSummary.
_UPDATES = ("UPDATE_CONNECTOR_CONFIGURATION", "UPDATE_WORKER_SETTING")
_REFUSED = ("UPDATE_FAILED", "ROLLBACK_IN_PROGRESS", "ROLLBACK_FAILED", "ROLLBACK_COMPLETE")


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """State of the connector at one call, and the call's action."""

    failed: bool
    restarts: int  # within the last hours
    did: str
    update_refused: bool = False  # the newest one: the connector has its former settings


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Handle a call by the schedule; after an AWS error the next call retries."""
    del event, context
    seen = keep(datetime.now(UTC))
    publish(seen)
    log.info("%s after %d restarts", seen.did, seen.restarts)
    return {"did": seen.did, "restarts": seen.restarts}


def keep(now: datetime) -> ConnectorStatus:
    """Restart a connector that has failed, with a growing pause between restarts."""
    found = connector()
    if found is None:
        return ConnectorStatus(False, 0, "nothing: there is no connector")
    arn, state = found["connectorArn"], found["connectorState"]
    known = operations(arn)
    earlier, update_refused = restarts(known, now), is_update_refused(known)
    if not (state == "FAILED" or has_failed_task(state, now)):
        did = "nothing: it runs, or it changes"
        return ConnectorStatus(False, len(earlier), did, update_refused)
    if earlier and now < earlier[0] + pause(len(earlier), earlier[0]):
        return ConnectorStatus(True, len(earlier), "waits", update_refused)
    kafkaconnect().restart_connector(connectorArn=arn)
    return ConnectorStatus(True, len(earlier) + 1, "restarted", update_refused)


def connector() -> dict[str, Any] | None:
    """Return the connector of the exact name; None if it is not deployed."""
    name = os.environ["NAME"]
    found = kafkaconnect().list_connectors(connectorNamePrefix=name)["connectors"]
    return next((each for each in found if each["connectorName"] == name), None)


def has_failed_task(state: str, now: datetime) -> bool:
    """Return whether the task of a running connector has failed by its newest metric."""
    if state != "RUNNING":
        return False
    found = boto3.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/KafkaConnect",
        MetricName="ErroredTaskCount",
        Dimensions=[{"Name": "ConnectorName", "Value": os.environ["NAME"]}],
        StartTime=now - _LOOKED_BACK,
        EndTime=now,
        Period=60,
        Statistics=["Minimum"],
    )["Datapoints"]
    newest = max(found, key=lambda point: point["Timestamp"], default=None)
    return newest is not None and newest["Minimum"] > 0


def operations(arn: str) -> list[dict[str, Any]]:
    """Return the connector's operations."""
    found = kafkaconnect().list_connector_operations(connectorArn=arn, maxResults=100)
    return list(found["connectorOperations"])


def is_update_refused(known: list[dict[str, Any]]) -> bool:
    """Return whether MSK Connect refused the newest update.

    The connector then runs with its former settings, and the deployment may have succeeded.
    """
    updates = [each for each in known if each["connectorOperationType"] in _UPDATES]
    newest = max(updates, key=lambda each: as_utc(each["creationTime"]), default=None)
    return newest is not None and newest["connectorOperationState"] in _REFUSED


def restarts(known: list[dict[str, Any]], now: datetime) -> list[datetime]:
    """Return when the connector was restarted within the last hours, the newest first."""
    started = [
        as_utc(each["creationTime"])
        for each in known
        if each["connectorOperationType"] == "RESTART_CONNECTOR"
    ]
    return sorted((time for time in started if now - time < FORGOTTEN_AFTER), reverse=True)


def pause(count: int, last: datetime) -> timedelta:
    """Return the exponential backoff after so many restarts, with the jitter of the last one."""
    first, longest = FIRST_PAUSE_MINUTES, MAX_PAUSE_MINUTES
    return timedelta(minutes=pause_after(count, first, longest, seed=last.isoformat()))


def as_utc(time: datetime) -> datetime:
    """Return the time with its zone; naive times are UTC."""
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def publish(seen: ConnectorStatus) -> None:
    """Publish how often the connector was restarted, and whether its newest update was refused."""
    values = {
        metrics.CONNECTOR_RESTARTS: float(seen.restarts),
        metrics.CONNECTOR_UPDATE_REFUSED: float(seen.update_refused),
    }
    boto3.client("cloudwatch").put_metric_data(
        Namespace=metrics.NAMESPACE,
        MetricData=[
            {
                "MetricName": metric.name,
                "Dimensions": [{"Name": metrics.DEPLOYMENT, "Value": os.environ["DIMENSION"]}],
                "Value": value,
                "Unit": metric.unit,
            }
            for metric, value in values.items()
        ],
    )


def kafkaconnect() -> Any:
    """Return a client of MSK Connect."""
    return boto3.client("kafkaconnect")
