"""Restart the connector when its task has failed, which MSK Connect does not do.

Invoked every five minutes. The keeper is stateless: MSK Connect lists the connector's operations,
and so how often it was restarted. A restart reads the secrets again, so a changed password needs
nothing else. MSK Connect restarts only a connector in the state RUNNING: one in FAILED has to be
replaced by an operator. Source: MSK Developer Guide, "Restart a connector".

Sinks are not restarted: their operators choose when to write to another system again. A refused
update of one is published as Debezium's is.

Environment: NAME of the connector, SINKS with the names of the others, separated by commas,
DIMENSION of the metrics.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
from botocore.exceptions import ClientError

from cdclake import metrics
from cdclake.backoff import pause_after
from cdclake.connectors.find_connector import find_connector
from cdclake.time_spans import as_utc

log = logging.getLogger()
log.setLevel(logging.INFO)

FIRST_PAUSE_MINUTES, MAX_PAUSE_MINUTES = 5, 60
FORGOTTEN_AFTER = timedelta(hours=6)  # an earlier restart had another cause
_LOOKED_BACK = timedelta(minutes=10)
_METRIC_PERIOD = timedelta(minutes=1)
_PAGE = {"PageSize": 100}
# Source: MSK Connect API Reference, ConnectorOperationSummary.
_UPDATES = ("UPDATE_CONNECTOR_CONFIGURATION", "UPDATE_WORKER_SETTING")
_REFUSED = ("UPDATE_FAILED", "ROLLBACK_IN_PROGRESS", "ROLLBACK_FAILED", "ROLLBACK_COMPLETE")
# Answers to a restart while another operation, as one by an operator, is in progress.
_NOT_RESTARTED = ("BadRequestException", "ConflictException")


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """State of the connector at one call."""

    restarts: int  # within the last hours, before this call
    did: str  # empty if a restart is due
    update_refused: bool = False  # the newest one: the connector has its former settings
    to_restart: str = ""  # ARN of the connector, if a restart is due


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Handle a call by the schedule; after an AWS error the next call retries."""
    del event, context
    seen = look(datetime.now(UTC))
    try:
        report(seen, refused_sinks())  # first: alarms need the metrics, also if the restart fails
    finally:
        did = restart(seen.to_restart) if seen.to_restart else seen.did
    log.info("%s after %d restarts", did, seen.restarts)
    return {"did": did, "restarts": seen.restarts}


def report(seen: ConnectorStatus, refused: list[str]) -> None:
    """Publish the metrics, and log the connectors whose newest update was refused."""
    publish(seen, refused)
    if seen.update_refused or refused:
        names = [*([os.environ["NAME"]] if seen.update_refused else []), *refused]
        log.error("MSK Connect refused the newest update of %s", ", ".join(names))


def look(now: datetime) -> ConnectorStatus:
    """Decide whether to restart the connector: pauses between restarts of a failed task grow."""
    found = find_connector(kafkaconnect(), os.environ["NAME"])
    if found is None:
        return ConnectorStatus(0, "nothing: there is no connector")
    arn, state = found["connectorArn"], found["connectorState"]
    known = operations(arn)
    earlier, update_refused = restarts(known, now), is_update_refused(known)
    if state == "FAILED":
        return ConnectorStatus(len(earlier), "failed: replace it", update_refused)
    if not has_failed_task(state, since=max(now - _LOOKED_BACK, settled(known)), now=now):
        return ConnectorStatus(len(earlier), "nothing: it runs, or it changes", update_refused)
    if earlier and now < earlier[0] + pause(len(earlier), earlier[0]):
        return ConnectorStatus(len(earlier), "waits", update_refused)
    return ConnectorStatus(len(earlier), "", update_refused, to_restart=arn)


def restart(arn: str) -> str:
    """Restart the connector; return what was done."""
    try:
        kafkaconnect().restart_connector(connectorArn=arn)
    except ClientError as error:
        if error.response["Error"]["Code"] not in _NOT_RESTARTED:
            raise
        return f"not restarted: {error}"
    return "restarted"


def refused_sinks() -> list[str]:
    """Return the names of the sinks whose newest update MSK Connect refused."""
    names = filter(None, os.environ["SINKS"].split(","))
    found = {name: find_connector(kafkaconnect(), name) for name in names}
    return [
        name
        for name, sink in found.items()
        if sink is not None and is_update_refused(operations(sink["connectorArn"]))
    ]


def settled(known: list[dict[str, Any]]) -> datetime:
    """Return the start of the first metric that measures only the time after all operations.

    An earlier one may have the failure that a restart or an update has ended.
    """
    ended = (as_utc(each.get("endTime") or each["creationTime"]) for each in known)
    return max(ended, default=datetime.min.replace(tzinfo=UTC)) + _METRIC_PERIOD


def has_failed_task(state: str, *, since: datetime, now: datetime) -> bool:
    """Return whether the task of a running connector has failed by its newest metric."""
    if state != "RUNNING" or since >= now:
        return False
    found = boto3.client("cloudwatch").get_metric_statistics(
        Namespace="AWS/KafkaConnect",
        MetricName="ErroredTaskCount",
        Dimensions=[{"Name": "ConnectorName", "Value": os.environ["NAME"]}],
        StartTime=since,  # CloudWatch rounds it down to the period
        EndTime=now,
        Period=int(_METRIC_PERIOD.total_seconds()),
        Statistics=["Minimum"],
    )["Datapoints"]
    newest = max(found, key=lambda point: point["Timestamp"], default=None)
    return newest is not None and newest["Minimum"] > 0


def operations(arn: str) -> list[dict[str, Any]]:
    """Return the connector's operations."""
    pages = kafkaconnect().get_paginator("list_connector_operations")
    found = pages.paginate(connectorArn=arn, PaginationConfig=_PAGE)
    return [each for page in found for each in page["connectorOperations"]]


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


def publish(seen: ConnectorStatus, refused: list[str]) -> None:
    """Publish how often the connector was restarted, and whether an update was refused.

    `refused` are the sinks whose newest one was.
    """
    values = {
        metrics.CONNECTOR_RESTARTS: seen.restarts,
        metrics.CONNECTOR_UPDATE_REFUSED: seen.update_refused or bool(refused),
    }
    metrics.publish(boto3.client("cloudwatch"), values, os.environ["DIMENSION"])


def kafkaconnect() -> Any:
    """Return a client of MSK Connect."""
    return boto3.client("kafkaconnect")
