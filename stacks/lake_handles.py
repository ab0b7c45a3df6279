"""Handles of a deployment for other stacks of the same CDK app."""

from __future__ import annotations

from dataclasses import dataclass

from aws_cdk import Environment, aws_ec2, aws_kms, aws_s3, aws_sns

from cdclake.stacks.lake_stack import LakeStack
from cdclake.stacks.network_stack import NetworkOutputs
from cdclake.stacks.observability_stack import ObservabilityStack


@dataclass(frozen=True, slots=True, kw_only=True)
class LakeHandles:
    """Parts of a deployment; a stack that uses one is deployed after the part's stack.

    `prefix` begins every name of the deployment; the topic accepts alarms with that prefix alone.
    `env` is the region of the deployment's stacks: pass it to a stack that uses a handle.
    """

    prefix: str
    env: Environment | None
    bucket: aws_s3.IBucket
    database: str
    key: aws_kms.IKey
    alarm_topic: aws_sns.ITopic
    connect_security_group: aws_ec2.ISecurityGroup


def lake_handles(
    lake: LakeStack, observability: ObservabilityStack, *, network: NetworkOutputs
) -> LakeHandles:
    """Return the handles of the deployment with these stacks."""
    deployment = lake.deployment
    region = deployment.aws.region
    key = aws_kms.Key.from_key_arn(lake, "HandleKey", network.context.key_arn)
    return LakeHandles(
        prefix=deployment.prefix,
        env=None if region is None else Environment(region=region),
        bucket=aws_s3.Bucket.from_bucket_attributes(
            lake,
            "Handle",
            bucket_arn=lake.warehouse.arn,
            bucket_name=lake.warehouse.name,
            encryption_key=key,
        ),
        database=lake.outputs.database,
        key=key,
        alarm_topic=observability.alarm_topic,
        connect_security_group=aws_ec2.SecurityGroup.from_security_group_id(
            lake, "HandleConnect", network.connect.group_id, allow_all_outbound=False
        ),
    )
