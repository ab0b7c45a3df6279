"""One thing that a role may do; a wildcard in it stands beside the reason for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aws_cdk import Aws, Stack, aws_iam
from constructs import Construct

from cdclake.stacks.constructs.nag_suppressions import suppress


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Actions on resources; `because` says why a resource ends in `*`, and none may without."""

    actions: Sequence[str]
    on: Sequence[str]
    only_if: Mapping[str, Any] = field(default_factory=dict)
    because: str = ""

    def statement(self) -> aws_iam.PolicyStatement:
        """As a policy has it."""
        return aws_iam.PolicyStatement(
            actions=list(self.actions), resources=list(self.on), conditions=dict(self.only_if)
        )

    def accept_wildcards(self, role: Construct) -> None:
        """Acknowledge to cdk-nag what `because` explains, and nothing else."""
        for resource in self.on if self.because else ():
            spelled = _as_reported(Stack.of(role).resolve(resource))
            if "*" in spelled:
                suppress(role, f"IAM5[Resource::{spelled}]", self.because)


def through_s3(key_arn: str) -> Grant:
    """What reading and writing objects of our buckets asks of our key."""
    return Grant(
        actions=["kms:Decrypt", "kms:GenerateDataKey"],
        on=[key_arn],
        only_if={"StringEquals": {"kms:ViaService": f"s3.{Aws.REGION}.amazonaws.com"}},
    )


def joins_cluster(cluster_arn: str) -> Grant:
    """Connects to Kafka, which lets nobody else in."""
    return Grant(
        actions=["kafka-cluster:Connect", "kafka-cluster:DescribeCluster"], on=[cluster_arn]
    )


def on_tables(*actions: str, database: str, because: str, tables: Sequence[str] = ("*",)) -> Grant:
    """Actions of the Glue catalog on tables of one database; Glue asks for all three levels."""
    return Grant(
        actions=actions,
        on=[
            arn("glue", "catalog"),
            arn("glue", f"database/{database}"),
            *(arn("glue", f"table/{database}/{table}") for table in tables),
        ],
        because=because,
    )


def arn(service: str, rest: str) -> str:
    """An ARN of this account and region."""
    return f"arn:{Aws.PARTITION}:{service}:{Aws.REGION}:{Aws.ACCOUNT_ID}:{rest}"


def _as_reported(value: Any) -> str:
    """A resource as cdk-nag 3.0.2 spells it in the id of its finding."""
    if not isinstance(value, dict):
        return str(value)
    [(function, argument)] = value.items()
    if function == "Fn::Join":
        return str(argument[0]).join(_as_reported(part) for part in argument[1])
    if function == "Fn::GetAtt":
        return f"<{'.'.join(argument)}>"
    return f"<{argument}>" if function == "Ref" else _as_reported(argument)
