"""Log lines of a deployment's components, merged by time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3

from cdclake import naming
from cdclake.config.deployment import Deployment
from cdclake.connectors.declared import connector_log
from cdclake.deployed.aws_calls import explained
from cdclake.deployed_jobs import JOBS
from cdclake.errors import InputError, NotRunning
from cdclake.firehose.log_names import firehose_log, function_log
from cdclake.log_line import LogLine, merged_lines

_POLL_S = 5.0
_MAX_CLOUDWATCH_DELAY_MS = 60_000  # how much later than others CloudWatch may show an event


def log_groups(deployment: Deployment) -> dict[str, list[str]]:
    """Return the log groups by component; those of web servers have generated names."""
    groups = _pipeline_groups(deployment) if deployment.plan.tables else {}
    if deployment.plan.streams:
        shared = [deployment.prefix] if deployment.plan.deliveries else []
        puts = [stream.name for stream in deployment.plan.put_streams]
        names = [*shared, *(naming.delivery_stream_name(deployment.prefix, put) for put in puts)]
        groups["firehose"] = [log(name) for name in names for log in (firehose_log, function_log)]
    return groups


def _pipeline_groups(deployment: Deployment) -> dict[str, list[str]]:
    """Return the log groups of connect, kafka, each sink and each job."""
    prefix = deployment.prefix
    groups = {
        "connect": [f"/aws/vendedlogs/{prefix}/connect"],
        "kafka": [f"/aws/vendedlogs/{prefix}/kafka"],
    }
    for connector in deployment.plan.connectors:
        name = connector_log(connector.name)
        groups[name] = [f"/aws/vendedlogs/{prefix}/{name}"]
    for job in JOBS:
        name = naming.STREAM_COMPONENT if job == naming.STREAM_JOB else job
        groups[name] = [f"/aws-glue/jobs/{prefix}/{job}/{kind}" for kind in ("output", "error")]
    return groups


def log_lines(
    deployment: Deployment, component: str | None, after: datetime, *, follow: bool
) -> Iterator[LogLine]:
    """Yield the lines of one component, or of all, from a time on, in the order of time.

    With `follow` it goes on forever, with a line a few seconds after it was written.
    """
    groups = log_groups(deployment)
    if component is not None and component not in groups:
        raise InputError(f"unknown component {component!r}", f"choose one of {', '.join(groups)}")
    chosen = groups if component is None else {component: groups[component]}
    with explained(deployment.prefix, "reach CloudWatch for the logs of"):
        client = boto3.client("logs")
    tails = [
        _GroupTail(client, name, group, after)
        for name, listed in chosen.items()
        for group in listed
    ]
    yield from merged_lines(tails, follow=follow, poll_seconds=_POLL_S)


class _GroupTail:
    """Reader of one log group, which may show an event later than one with a later time."""

    def __init__(self, client: Any, component: str, group: str, after: datetime) -> None:
        self._client, self._component, self._group = client, component, group
        self._from_ms = int(after.timestamp() * 1000)
        self._seen: dict[str, int] = {}  # time in milliseconds by event, of the last minute

    def lines(self) -> Iterator[LogLine]:
        """Yield the new events; none if the group does not exist, as before the first run."""
        pages = self._client.get_paginator("filter_log_events").paginate(
            logGroupName=self._group, startTime=self._from_ms
        )
        try:
            with explained(self._group, "read the log"):
                for page in pages:
                    for event in page["events"]:
                        if event["eventId"] not in self._seen:
                            self._seen[event["eventId"]] = event["timestamp"]
                            yield self._line(event)
        except NotRunning:
            return
        self._look_back()

    def _line(self, event: dict[str, Any]) -> LogLine:
        at = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
        return LogLine(at, self._component, event["message"].rstrip())

    def _look_back(self) -> None:
        """Begin the next look a minute before the newest event, without those that were shown."""
        newest = max(self._seen.values(), default=0)
        self._from_ms = max(self._from_ms, newest - _MAX_CLOUDWATCH_DELAY_MS)
        self._seen = {event: at for event, at in self._seen.items() if at >= self._from_ms}
