"""Keep the stream running: CloudFormation neither starts nor restarts jobs.

Invoked every five minutes, and when a run of the job ends. The keeper is stateless: Glue lists the
runs, and a control object in S3 stores the wanted deployment and, by its modification time, since
when it is wanted. Concurrent calls are harmless, since Glue rejects a second run.

Environment: JOB, BUCKET and KEY of the control object, PAUSE (key of the object that an operator
writes to pause the stream), DEPLOYMENT (empty: keep none running), SCHEDULED ("true" if a schedule
starts the stream; then DEPLOYMENT is empty), DIMENSION of the metrics.
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
from botocore.exceptions import ClientError

from cdclake import metrics, stream_keeping
from cdclake.backoff import pause_after
from cdclake.time_spans import as_utc

log = logging.getLogger()
log.setLevel(logging.INFO)

ALIVE = {"STARTING", "RUNNING", "STOPPING", "WAITING"}
FAILED = {"FAILED", "ERROR", "TIMEOUT", "EXPIRED", "SUCCEEDED"}  # a stream must not end
HEALTHY_AFTER = timedelta(minutes=stream_keeping.HEALTHY_AFTER_MINUTES)
GRACE = timedelta(minutes=15)  # for the current batch to end before the run is stopped
DEPLOYMENT = "--deployment"  # argument of the runs that a keeper has started


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """State of the stream after one call, and what the call did."""

    running: bool
    failures: int
    needs_operator: bool  # only an operator can help: it failed often, or cannot be stopped
    did: str


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Handle a call by schedule or job event; after an AWS error the next call retries."""
    del event, context
    seen = keep(datetime.now(UTC))
    publish(seen)
    log.info("%s after %d failures", seen.did, seen.failures)
    return {"did": seen.did, "failures": seen.failures}


def keep(now: datetime) -> StreamStatus:
    """Start the stream, or stop an overdue run of an older deployment, or do nothing."""
    paused = is_paused()
    wanted = None if paused else os.environ["DEPLOYMENT"] or None
    since = order(wanted)
    runs = recent_runs()
    alive = [run for run in runs if run["JobRunState"] in ALIVE]
    if alive:
        alive = [run for run in alive if run["JobRunState"] != "STOPPING"]
        ending = [run for run in alive if paused or not ends_by_itself(run)]
        overdue = [run["Id"] for run in ending if run["StartedOn"] < since and now - since > GRACE]
        if overdue:
            return stop(overdue, needs_operator_if_refused=now - since > 2 * GRACE)
        return StreamStatus(True, 0, False, "nothing: it runs")
    if wanted is None:
        return StreamStatus(False, 0, False, "nothing: no stream is wanted")
    return start_unless_it_fails([run for run in runs if run["StartedOn"] >= since], now)


def stop(overdue: list[str], *, needs_operator_if_refused: bool) -> StreamStatus:
    """Stop these runs; Glue reports those that it does not stop in a successful answer."""
    answer = glue().batch_stop_job_run(JobName=os.environ["JOB"], JobRunIds=overdue)
    refused = []
    for error in answer.get("Errors", ()):
        detail = error.get("ErrorDetail", {})
        reason = f"{detail.get('ErrorCode')}: {detail.get('ErrorMessage')}"
        refused.append(f"could not stop {error.get('JobRunId')}: {reason}")
        log.error("%s", refused[-1])
    if refused:
        return StreamStatus(True, 0, needs_operator_if_refused, "; ".join(refused))
    return StreamStatus(True, 0, False, "stopped a run that did not end by itself")


def ends_by_itself(run: dict[str, Any]) -> bool:
    """Return whether the run is one of the scheduled mode, which reads no order.

    The order may be younger than such a run: the keeper writes its first one in any minute after a
    deployment, and `cdclake pause` writes another.
    """
    return bool(os.environ["SCHEDULED"]) and DEPLOYMENT not in run.get("Arguments", {})


def is_paused() -> bool:
    """Return whether an operator has paused the stream (`cdclake pause --target aws`)."""
    s3 = boto3.client("s3")
    try:
        s3.head_object(Bucket=os.environ["BUCKET"], Key=os.environ["PAUSE"])
    except ClientError as error:
        if error.response["Error"]["Code"] not in ("404", "NoSuchKey"):
            raise
        return False
    return True


def order(wanted: str | None) -> datetime:
    """Store the wanted deployment unless it is stored already; return since when it is stored.

    A stream of another deployment reads it between two batches, and ends. So does a stream that
    `cdclake forget` restarts: it writes the same deployment with another `restart`, which stays.
    """
    s3, place = boto3.client("s3"), {"Bucket": os.environ["BUCKET"], "Key": os.environ["KEY"]}
    try:
        stored = s3.get_object(**place)
        if json.loads(stored["Body"].read())["deployment"] == wanted:
            return as_utc(stored["LastModified"])
    except ClientError as error:
        if error.response["Error"]["Code"] != "NoSuchKey":
            raise
    s3.put_object(**place, Body=json.dumps({"deployment": wanted}).encode())
    return as_utc(s3.head_object(**place)["LastModified"])


def recent_runs() -> list[dict[str, Any]]:
    """Return the job's recent runs, the newest first."""
    found = glue().get_job_runs(JobName=os.environ["JOB"], MaxResults=50)["JobRuns"]
    runs = [{**run, "StartedOn": as_utc(run["StartedOn"])} for run in found]
    return sorted(runs, key=lambda run: run["StartedOn"], reverse=True)


def start_unless_it_fails(runs: list[dict[str, Any]], now: datetime) -> StreamStatus:
    """Start the stream or wait (backoff), depending on this deployment's failed runs.

    Never ends: what fails all runs of an hour, such as S3 or Kafka, may work again after it.
    """
    failures = count_failures(runs)
    late = failures >= stream_keeping.FAILURES_TO_ALARM
    if failures and now < ended(runs[0]) + pause(failures, runs[0]["Id"]):
        return StreamStatus(False, failures, late, "waits")
    arguments = {DEPLOYMENT: os.environ["DEPLOYMENT"]}
    try:
        run = glue().start_job_run(JobName=os.environ["JOB"], Arguments=arguments)["JobRunId"]
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if code == "ConcurrentRunsExceededException":
            return StreamStatus(True, failures, late, "nothing: another call has started it")
        if code != "ResourceNumberLimitExceededException":
            raise
        return StreamStatus(False, failures, late, f"waits for the account's quota ({error})")
    return StreamStatus(True, failures, late, f"started {run}")


def count_failures(runs: list[dict[str, Any]]) -> int:
    """Count the newest consecutive runs that failed to start."""
    failures = 0
    for run in runs:
        lived = ended(run) - run["StartedOn"]
        if run["JobRunState"] not in FAILED or lived >= HEALTHY_AFTER:
            break
        failures += 1
    return failures


def pause(failures: int, run: str) -> timedelta:
    """Return the exponential backoff after so many failures, with the jitter of the last run."""
    first, longest = stream_keeping.FIRST_PAUSE_MINUTES, stream_keeping.MAX_PAUSE_MINUTES
    return timedelta(minutes=pause_after(failures, first, longest, seed=run))


def ended(run: dict[str, Any]) -> datetime:
    """Return when the run ended, or when it started if Glue has no end time."""
    return as_utc(run.get("CompletedOn") or run["StartedOn"])


def publish(seen: StreamStatus) -> None:
    """Publish the metrics of the alarms on every call: missing data raises an alarm."""
    values = {
        metrics.STREAM_RUNNING: seen.running,
        metrics.STREAM_FAILURES: seen.failures,
        metrics.STREAM_GIVEN_UP: seen.needs_operator,
    }
    metrics.publish(boto3.client("cloudwatch"), values, os.environ["DIMENSION"])


def glue() -> Any:
    """Return a Glue client."""
    return boto3.client("glue")
