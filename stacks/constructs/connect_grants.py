"""Grants of the connector: write its topics, store its offsets, read secrets.

Sources: MSK's developer guide ("Understand service execution role", "Manage source connector
offsets"), Service Authorization Reference of Apache Kafka APIs for MSK.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aws_cdk import Aws

from cdclake.stacks.constructs.grant import Grant, arn
from cdclake.stacks.constructs.job_grants import reads_schemas

_WRITES = ("DescribeTopic", "WriteData")
_KEEPS = ("DescribeTopic", "DescribeTopicDynamicConfiguration", "ReadData", "WriteData")


def writes_topics(cluster: str, *, pipeline: str, others: Sequence[str]) -> list[Grant]:
    """Allow writing the pipeline's topics; all of them exist as resources of the deployment.

    `cluster` is `name/id` as in the ARNs of topics; the id may be `*`.
    """
    return [
        Grant(
            actions=_actions(*_WRITES),
            on=[arn("kafka", f"topic/{cluster}/{pipeline}.*")],
            because="the topics of the pipeline's tables, including future tables",
        ),
        Grant(
            actions=_actions(*_WRITES),
            on=[arn("kafka", f"topic/{cluster}/{topic}") for topic in others],
            because="MSK generates the end of a cluster's ARN; the cluster name is fixed",
        ),
    ]


def writes_idempotently(cluster_arn: str) -> Grant:
    """Allow the worker's producers to number what they send, so that Kafka drops repeats."""
    return Grant(actions=_actions("WriteDataIdempotently"), on=[cluster_arn])


def keeps_state(cluster: str, *, offsets: str, connector: str) -> list[Grant]:
    """Allow using the worker's topics and groups, which MSK Connect names after the connector."""
    return [
        Grant(
            actions=_actions(*_KEEPS),
            on=[arn("kafka", f"topic/{cluster}/{offsets}")],
            because="MSK generates the end of a cluster's ARN; the cluster name is fixed",
        ),
        *keeps_worker_state(cluster, connector=connector),
    ]


def keeps_worker_state(cluster: str, *, connector: str) -> list[Grant]:
    """Allow using the topics and groups that MSK Connect makes for the connector's worker."""
    # Pages of MSK's developer guide disagree: "Use default offset storage topic" has the first
    # name, "Understand state management" the second.
    own = [f"__amazon_msk_connect_*_{connector}_*", f"__msk_connect_*_{connector}_*"]
    # The second is Connect's own name of a connector's group.
    groups = ["__amazon_msk_connect_*", f"connect-{connector}*"]
    return [
        Grant(
            actions=_actions("CreateTopic", *_KEEPS),
            on=[arn("kafka", f"topic/{cluster}/{topic}") for topic in own],
            because="configuration and status topics: MSK Connect appends an id to their names",
        ),
        Grant(
            actions=_actions("AlterGroup", "DescribeGroup"),
            on=[arn("kafka", f"group/{cluster}/{group}") for group in groups],
            because="the worker's group: MSK documents only this part of its name",
        ),
    ]


def reads_named_topics(cluster: str, topics: Sequence[str]) -> Grant:
    """Allow a sink to consume these topics; its group is among those of its worker."""
    return Grant(
        actions=_actions("DescribeTopic", "DescribeTopicDynamicConfiguration", "ReadData"),
        on=[arn("kafka", f"topic/{cluster}/{topic}") for topic in topics],
        because="MSK generates the end of a cluster's ARN; the cluster name is fixed",
    )


def commits_in_transactions(
    cluster_arn: str, cluster: str, *, topic: str, connector: str
) -> list[Grant]:
    """Allow an Iceberg sink to agree on its commits through its control topic."""
    return [
        writes_idempotently(cluster_arn),
        Grant(
            actions=_actions("DescribeTopic", "ReadData", "WriteData"),
            on=[arn("kafka", f"topic/{cluster}/{topic}")],
            because="MSK generates the end of a cluster's ARN; the cluster name is fixed",
        ),
        Grant(
            actions=_actions("AlterGroup", "DescribeGroup"),
            on=[arn("kafka", f"group/{cluster}/cg-control-{connector}-*")],
            because="each task has a group of a random name under this prefix",
        ),
        Grant(
            actions=_actions("AlterTransactionalId", "DescribeTransactionalId"),
            on=[arn("kafka", f"transactional-id/{cluster}/{connector}-*")],
            because="each task has a transaction of a random name under this prefix",
        ),
    ]


def reads_named_secrets(names: Sequence[str], key_arn: str) -> list[Grant]:
    """Allow reading secrets by name: Secrets Manager appends six characters to their ARNs."""
    arns = [arn("secretsmanager", f"secret:{name}-??????") for name in names]
    because = "Secrets Manager ends the ARN of a secret with six random characters"
    return [replace(grant, because=because) for grant in reads_secrets(arns, key_arn)]


def reads_secrets(secret_arns: Sequence[str], key_arn: str) -> list[Grant]:
    """Allow reading secrets; only Secrets Manager may use the key for it."""
    through = {"StringEquals": {"kms:ViaService": f"secretsmanager.{Aws.REGION}.amazonaws.com"}}
    return [
        Grant(actions=["secretsmanager:GetSecretValue"], on=list(secret_arns)),
        Grant(actions=["kms:Decrypt"], on=[key_arn], only_if=through),
    ]


def registers_schemas(registry: str) -> list[Grant]:
    """Allow what the converter calls to register schemas in this Glue registry.

    Source: Glue's developer guide, "IAM examples for serializers".
    """
    place = arn("glue", f"registry/{registry}"), arn("glue", f"schema/{registry}/*")
    because = "a schema per table's topic, including future tables"
    actions = ["CreateSchema", "GetSchemaByDefinition", "PutSchemaVersionMetadata"]
    writes = [f"glue:{action}" for action in (*actions, "RegisterSchemaVersion")]
    return [Grant(actions=writes, on=[*place], because=because), *reads_schemas()]


def _actions(*names: str) -> list[str]:
    return [f"kafka-cluster:{name}" for name in names]
