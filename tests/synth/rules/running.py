"""What runs, and what starts it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from cdclake.naming import PROBE_JOB
from tests.synth.deployments import Template


def one_run_at_a_time(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """Two runs of a job would write the same tables; one without an end is paid without an end."""
    if kind == "AWS::Glue::Job":
        if properties.get("ExecutionProperty", {}).get("MaxConcurrentRuns") != 1:
            yield f"{kind} may run twice at once"
        if properties.get("MaxRetries", 0) != 0:
            yield f"{kind} is tried again by two sides"
        for needed in ("Timeout", "SecurityConfiguration", "Connections", "NumberOfWorkers"):
            if needed not in properties:
                yield f"{kind} has no {needed}"
        if properties.get("GlueVersion") != "5.1":
            yield f"{kind} is not of the version that runs locally"


def connections_name_their_zone(
    kind: str, properties: dict[str, Any], _: Template
) -> Iterator[str]:
    """Require what Glue needs to place a job's workers, and notices only when a job runs."""
    if kind == "AWS::Glue::Connection":
        place = properties["ConnectionInput"].get("PhysicalConnectionRequirements", {})
        for needed in ("SubnetId", "SecurityGroupIdList", "AvailabilityZone"):
            if needed not in place:
                yield f"{kind} has no {needed}"


def what_runs_is_known(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """A run shows metrics, is of code that its name tells, and keeps no place beside the stamps."""
    if kind != "AWS::Glue::Job":
        return
    arguments = properties.get("DefaultArguments", {})
    if arguments.get("--enable-observability-metrics") != "true":
        yield f"{kind} shows no metrics"
    if arguments.get("--job-bookmark-option") != "job-bookmark-disable":
        yield f"{kind} keeps bookmarks"
    script = properties["Command"]["ScriptLocation"]
    files = [script, arguments.get("--extra-py-files"), arguments.get("--plan")]
    if str(properties["Name"]).endswith(f"-{PROBE_JOB}"):
        files.pop()  # it checks the place, whatever the plan is
    for file in files:
        if not re.search(r"/deployed/[a-z_-]+-[0-9a-f]{16}[.][a-z]+", json.dumps(file)):
            yield f"{kind} reads a file whose name does not follow its content"


def answers_are_awaited_briefly(
    kind: str, properties: dict[str, Any], _: Template
) -> Iterator[str]:
    """CloudFormation waits an hour by default for a function that Lambda has ended."""
    if kind.startswith("Custom::") and not 0 < int(properties.get("ServiceTimeout", 0)) < 3600:
        yield f"{kind} is awaited for an hour"


def schedules_fail_loudly(kind: str, properties: dict[str, Any], _: Template) -> Iterator[str]:
    """A call that failed is tried again for a while, and then lies where it is found."""
    if kind == "AWS::Scheduler::Schedule":
        target = properties["Target"]
        if "DeadLetterConfig" not in target:
            yield f"{kind} has no dead-letter queue"
        retries = target.get("RetryPolicy", {})
        if retries.get("MaximumEventAgeInSeconds", 86400) > 3600:
            yield f"{kind} tries for longer than the next start is away"
        if properties.get("State", "ENABLED") != "ENABLED" or "KmsKeyArn" not in properties:
            yield f"{kind} is off, or not encrypted with our key"
    if kind == "AWS::SQS::Queue" and "KmsMasterKeyId" not in properties:
        yield f"{kind} is not encrypted with our key"
