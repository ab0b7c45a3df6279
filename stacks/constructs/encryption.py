"""The KMS key that encrypts all data at rest of one deployment."""

from __future__ import annotations

from aws_cdk import Aws, RemovalPolicy, aws_iam, aws_kms
from constructs import Construct

from cdclake.stacks.constructs.service_role import only_for


class Encryption(Construct):
    """Key that rotates yearly; roles of this account use it as their own policies allow."""

    def __init__(
        self, scope: Construct, construct_id: str, *, prefix: str, kept: RemovalPolicy
    ) -> None:
        super().__init__(scope, construct_id)
        key = aws_kms.Key(
            self,
            "Key",
            alias=f"alias/{prefix}",
            description=f"Encrypts the data at rest of {prefix}",
            enable_key_rotation=True,
            removal_policy=kept,
        )
        key.add_to_resource_policy(_logs_statement(prefix))
        key.add_to_resource_policy(_alarms_statement(prefix))
        self.key_arn = key.key_arn


def _logs_statement(prefix: str) -> aws_iam.PolicyStatement:
    """Allow CloudWatch Logs to use the key for the deployment's log groups.

    Their names begin with the prefix, as generated names do, or have it after a service's part,
    or, if Glue derives them from role and security configuration, in these.
    CloudWatch Logs requires this in the key's policy.

    Source: CloudWatch Logs user guide, "Encrypt log data using AWS KMS".
    """
    groups = f"arn:{Aws.PARTITION}:logs:{Aws.REGION}:{Aws.ACCOUNT_ID}:log-group:"
    names = (
        f"{prefix}-*",
        *(f"/aws*/{prefix}{end}" for end in ("", "-*", "/*")),
        f"/aws-glue/jobs-*{prefix}-*",  # by role and security configuration
    )
    own = [groups + name for name in names]
    return aws_iam.PolicyStatement(
        sid="LogGroupsOfThisDeployment",
        principals=[aws_iam.ServicePrincipal(f"logs.{Aws.REGION}.amazonaws.com")],
        actions=["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*"],
        resources=["*"],  # in a key's policy: this key
        conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": own}},
    )


def _alarms_statement(prefix: str) -> aws_iam.PolicyStatement:
    """Allow CloudWatch to send the deployment's alarms to a topic under this key.

    Source: SNS developer guide, "Enable compatibility between event sources from AWS services and
    encrypted topics".
    """
    return aws_iam.PolicyStatement(
        sid="AlarmsOfThisDeployment",
        principals=[aws_iam.ServicePrincipal("cloudwatch.amazonaws.com")],
        actions=["kms:Decrypt", "kms:GenerateDataKey*"],
        resources=["*"],  # in a key's policy: this key
        conditions=only_for(alarms_arn(prefix)),
    )


def alarms_arn(prefix: str) -> str:
    """Return the ARN pattern of a deployment's alarms, without `arn:<partition>:`."""
    return f"cloudwatch:{Aws.REGION}:{Aws.ACCOUNT_ID}:alarm:{prefix}-*"
