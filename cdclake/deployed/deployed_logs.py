"""Log lines of a deployment's components, merged by time."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3

from cdclake import naming
from cdclake.config.deployment import Deployment
from cdclake.deployed.aws_calls import explained
from cdclake.deployed_jobs import JOBS
from cdclake.errors import InputError, NotRunning
from cdclake.log_line import LogLine

_POLL_S = 5.0


def log_groups(deployment: Deployment) -> dict[str, list[str]]:
    """Return the log groups of the deployment by component: connect, kafka, and each job."""
    prefix = deployment.prefix
    groups = {
        "connect": [f"/aws/vendedlogs/{prefix}/connect"],
        "kafka": [f"/aws/vendedlogs/{prefix}/kafka"],
    }
    for job in JOBS:
        name = naming.STREAM_COMPONENT if job == naming.STREAM_JOB else job
        groups[name] = [f"/aws-glue/jobs/{prefix}/{job}/{kind}" for kind in ("output", "error")]
    return groups


def log_lines(
    deployment: Deployment, component: str | None, since: timedelta, *, follow: bool
) -> Iterator[LogLine]:
    """Yield the lines of one component, or of all, since so long ago, in the order of time.

    With `follow` it goes on for ever, with a line a few seconds after it was written.
    """
    groups = log_groups(deployment)
    if component is not None and component not in groups:
        raise InputError(f"unknown component {component!r}", f"choose one of {', '.join(groups)}")
    chosen = groups if component is None else {component: groups[component]}
    with explained(deployment.prefix, "reach CloudWatch for the logs of"):
        client = boto3.client("logs")
    after = datetime.now(UTC) - since
    while True:
        found = [(name, group) for name, listed in chosen.items() for group in listed]
        streams = [_lines(client, name, group, after) for name, group in found]
        newest = after
        for line in heapq.merge(*streams):
            newest = line.at
            yield line
        if not follow:
            return
        if newest > after:
            after = newest + timedelta(milliseconds=1)
        time.sleep(_POLL_S)


def _lines(client: Any, component: str, group: str, after: datetime) -> Iterator[LogLine]:
    """Yield the events of one group; none if it does not exist, as before the first run."""
    pages = client.get_paginator("filter_log_events").paginate(
        logGroupName=group, startTime=int(after.timestamp() * 1000)
    )
    try:
        with explained(group, "read the log"):
            for page in pages:
                for event in page["events"]:
                    at = datetime.fromtimestamp(event["timestamp"] / 1000, UTC)
                    yield LogLine(at, component, event["message"].rstrip())
    except NotRunning:
        return
