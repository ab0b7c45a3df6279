"""Fixed names of a deployment that something else may have already.

What holds data outlives its stack with `protect: true`, and keeps its name. No remedy destroys it:
the hashes and tokens of an earlier deployment cannot be made again without its salt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import boto3

from cdclake import naming
from cdclake.check import Check, failed, passed
from cdclake.config.deployment import Deployment, described_pipeline
from cdclake.config.kafka_model import CreatedKafka, ExistingKafka
from cdclake.deployed.aws_calls import unless_refused
from cdclake.deployed.stack_lookup import found_stack
from cdclake.plan import GLUE_REGISTRY

_KEPT = (
    "it may belong to an earlier deployment: keep it, and choose another `name:` or environment;"
    " or delete it as the runbook tearing-down says, if nothing needs it"
)
_MAX_LISTED_TOPICS = 3
Taken = Iterator[tuple[str, str]]  # what has the name, and what to do


def check_names(deployment: Deployment) -> Iterator[Check]:
    """Check that nothing else has the fixed names, unless the deployment itself exists.

    A look-up that AWS refuses is skipped: the others' results are needed all the same.
    """
    stack = found_stack(f"{deployment.prefix}-lake")
    if stack is not None:
        yield _deployed(deployment, stack)
        return
    look_ups = (
        _taken_database,
        _taken_login,
        _taken_salt,
        _taken_cluster,
        _taken_topics,
        _taken_registry,
        _taken_streams,
        _taken_logs,
    )
    found = [check for look_up in look_ups for check in _looked_up(look_up, deployment)]
    yield from found
    if not found:
        yield passed("names", f"{deployment.plan.lake_database} and {deployment.prefix} are free")


def _deployed(deployment: Deployment, stack: Mapping[str, Any]) -> Check:
    """Compare the pipeline that the stack describes: another file may have the same prefix.

    A stack has no tags of ours, since CDK is told to tag its resources alone.
    """
    prefix, pipeline = deployment.prefix, described_pipeline(stack.get("Description", ""))
    if pipeline in (None, deployment.plan.name):
        return passed("names", f"{prefix} is deployed already")
    environment = prefix.removeprefix(pipeline).removeprefix("-")
    where = f"in environment {environment}" if environment else "without an environment"
    return failed(
        "names",
        f"the stacks {prefix}-* are those of the pipeline {pipeline} {where}",
        "choose another `name:` or environment: a deployment would rewrite these stacks",
    )


def _looked_up(look_up: Callable[[Deployment], Taken], deployment: Deployment) -> list[Check]:
    return unless_refused("names", lambda: (failed("names", *each) for each in look_up(deployment)))


def _taken_database(deployment: Deployment) -> Taken:
    glue = boto3.client("glue")
    try:
        glue.get_database(Name=deployment.plan.lake_database)
    except glue.exceptions.EntityNotFoundException:
        return
    yield (
        f"the Glue database {deployment.plan.lake_database} exists",
        "choose another `lake: database:`; delete it only if its tables are not needed, since they"
        " cannot be found without it",
    )


def _taken_login(deployment: Deployment) -> Taken:
    name = naming.login_secret(deployment.prefix)
    remedy = f"aws secretsmanager delete-secret --secret-id {name} --force-delete-without-recovery"
    return _taken_secret(name, "", remedy)


def _taken_salt(deployment: Deployment) -> Taken:
    return _taken_secret(
        naming.salt_secret(deployment.prefix),
        ": the salt of an earlier deployment's hashes and tokens",
        "keep it (`aws secretsmanager restore-secret` if it is being deleted) as long as data"
        " with such hashes or tokens is, and choose another `name:` or environment; without"
        " that data delete it with `--recovery-window-in-days 7`, which frees the name then",
    )


def _taken_secret(name: str, purpose: str, remedy: str) -> Taken:
    client = boto3.client("secretsmanager")
    try:
        found = client.describe_secret(SecretId=name)
    except client.exceptions.ResourceNotFoundException:
        return
    state = "is being deleted" if found.get("DeletedDate") else "exists"
    yield f"the secret {name} {state}{purpose}", remedy


def _taken_cluster(deployment: Deployment) -> Taken:
    if not isinstance(deployment.aws.kafka.declared, CreatedKafka) or not deployment.plan.tables:
        return
    client = boto3.client("kafka")
    pages = client.get_paginator("list_clusters_v2").paginate(ClusterNameFilter=deployment.prefix)
    names = {each["ClusterName"] for page in pages for each in page["ClusterInfoList"]}
    if deployment.prefix in names:
        yield f"the MSK cluster {deployment.prefix} exists", _KEPT


def _taken_topics(deployment: Deployment) -> Taken:
    plan, kafka = deployment.plan, deployment.aws.kafka.declared
    if not isinstance(kafka, ExistingKafka) or not plan.tables:
        return
    wanted = {naming.offsets_topic(plan.name), *plan.topics, *plan.control_topics.values()}
    pages = boto3.client("kafka").get_paginator("list_topics")
    found = pages.paginate(ClusterArn=kafka.cluster_arn)
    taken = sorted(wanted & {each["TopicName"] for page in found for each in page["Topics"]})
    if taken:
        more = ["..."] if len(taken) > _MAX_LISTED_TOPICS else []
        yield (
            f"Kafka has {len(taken)} of the pipeline's topics:"
            f" {', '.join([*taken[:_MAX_LISTED_TOPICS], *more])}",
            "they may belong to an earlier deployment, also to one of another environment: keep"
            " them, and choose another `name:`, which is part of their names; or delete them, if"
            " nothing needs their events",
        )


def _taken_registry(deployment: Deployment) -> Taken:
    if deployment.plan.registry != GLUE_REGISTRY:
        return
    glue = boto3.client("glue")
    try:
        glue.get_registry(RegistryId={"RegistryName": deployment.prefix})
    except glue.exceptions.EntityNotFoundException:
        return
    yield f"the schema registry {deployment.prefix} of Glue exists", _KEPT


def _taken_streams(deployment: Deployment) -> Taken:
    client = boto3.client("kinesis")
    for stream in deployment.plan.put_streams:
        if stream.source != "kinesis":
            continue
        name = naming.kinesis_stream_name(deployment.prefix, stream.name)
        try:
            client.describe_stream_summary(StreamName=name)
        except client.exceptions.ResourceNotFoundException:
            continue
        yield f"the Kinesis stream {name} exists", f"{_KEPT}; its hours are billed"


def _taken_logs(deployment: Deployment) -> Taken:
    prefix = f"/aws-glue/jobs/{deployment.prefix}/"
    found = boto3.client("logs").describe_log_groups(logGroupNamePrefix=prefix)["logGroups"]
    for group in found:
        name = group["logGroupName"]
        yield f"the log group {name} exists", f"aws logs delete-log-group --log-group-name {name}"
