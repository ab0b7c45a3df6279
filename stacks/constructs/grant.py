"""Permissions of a role, with the reason for each wildcard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aws_cdk import Aws, Stack, aws_iam
from constructs import Construct

from cdclake.stacks.constructs.nag_suppressions import suppress


@dataclass(frozen=True, slots=True, kw_only=True)
class TableGrant:
    """The part of a grant that concerns tables of the Glue catalog; names may hold `*`."""

    actions: Sequence[str]
    database: str
    tables: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Actions on resources; `because` is the reason that a wildcard in a resource requires."""

    actions: Sequence[str]
    on: Sequence[str]
    only_if: Mapping[str, Any] = field(default_factory=dict)
    because: str = ""
    tables: TableGrant | None = None

    def statement(self) -> aws_iam.PolicyStatement:
        """Return the statement of a policy."""
        return aws_iam.PolicyStatement(
            actions=list(self.actions), resources=list(self.on), conditions=dict(self.only_if)
        )

    def accept_wildcards(self, role: Construct) -> None:
        """Suppress cdk-nag's findings on the wildcards that `because` explains, and no others."""
        for resource in self.on if self.because else ():
            spelled = _as_reported(Stack.of(role).resolve(resource))
            if "*" in spelled:
                suppress(role, f"IAM5[Resource::{spelled}]", self.because)


def through_s3(key_arn: str) -> Grant:
    """Allow using the key to read and write objects in S3."""
    return Grant(
        actions=["kms:Decrypt", "kms:GenerateDataKey"],
        on=[key_arn],
        only_if={"StringEquals": {"kms:ViaService": f"s3.{Aws.REGION}.amazonaws.com"}},
    )


def joins_cluster(cluster_arn: str) -> Grant:
    """Allow connecting to the Kafka cluster."""
    return Grant(
        actions=["kafka-cluster:Connect", "kafka-cluster:DescribeCluster"], on=[cluster_arn]
    )


def finds_brokers() -> Grant:
    """Allow reading the addresses of a cluster's brokers.

    Source: the Service Authorization Reference, which lists no resource type for the action.
    """
    return Grant(
        actions=["kafka:GetBootstrapBrokers"],
        on=["*"],
        because="MSK has no resource-level permissions for this read-only call",
    )


def on_tables(*actions: str, database: str, because: str, tables: Sequence[str] = ("*",)) -> Grant:
    """Allow Glue catalog actions on tables of one database, at all three levels of the catalog."""
    return Grant(
        actions=actions,
        on=[
            arn("glue", "catalog"),
            arn("glue", f"database/{database}"),
            *(arn("glue", f"table/{database}/{table}") for table in tables),
        ],
        because=because,
        tables=TableGrant(actions=actions, database=database, tables=tables),
    )


def arn(service: str, rest: str) -> str:
    """Return an ARN in this account and region."""
    return f"arn:{Aws.PARTITION}:{service}:{Aws.REGION}:{Aws.ACCOUNT_ID}:{rest}"


def _as_reported(value: Any) -> str:
    """Return a resource as cdk-nag 3.0.2 writes it in the id of its finding."""
    if not isinstance(value, dict):
        return str(value)
    [(function, argument)] = value.items()
    if function == "Fn::Join":
        return str(argument[0]).join(_as_reported(part) for part in argument[1])
    if function == "Fn::GetAtt":
        return f"<{'.'.join(argument)}>"
    return f"<{argument}>" if function == "Ref" else _as_reported(argument)
