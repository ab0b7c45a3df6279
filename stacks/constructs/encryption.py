"""The key that everything of one deployment is encrypted with at rest."""

from __future__ import annotations

from aws_cdk import Aws, RemovalPolicy, aws_iam, aws_kms
from constructs import Construct


class Encryption(Construct):
    """A key that rotates every year; roles of this account use it as their own policies say."""

    def __init__(
        self, scope: Construct, construct_id: str, *, prefix: str, kept: RemovalPolicy
    ) -> None:
        super().__init__(scope, construct_id)
        key = aws_kms.Key(
            self,
            "Key",
            alias=f"alias/{prefix}",
            description=f"Data at rest of {prefix}",
            enable_key_rotation=True,
            removal_policy=kept,
        )
        key.add_to_resource_policy(_logs_statement())
        self.key_arn = key.key_arn


def _logs_statement() -> aws_iam.PolicyStatement:
    """CloudWatch Logs uses a key only if the key says so; here for log groups of this account.

    Source: CloudWatch Logs user guide, "Encrypt log data using AWS KMS".
    """
    groups = f"arn:{Aws.PARTITION}:logs:{Aws.REGION}:{Aws.ACCOUNT_ID}:log-group:*"
    return aws_iam.PolicyStatement(
        sid="LogGroupsOfThisAccount",
        principals=[aws_iam.ServicePrincipal(f"logs.{Aws.REGION}.amazonaws.com")],
        actions=["kms:Decrypt", "kms:DescribeKey", "kms:Encrypt", "kms:GenerateDataKey*"],
        resources=["*"],  # in a key's policy: this key
        conditions={"ArnLike": {"kms:EncryptionContext:aws:logs:arn": groups}},
    )
