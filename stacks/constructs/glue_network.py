"""Network connection and encryption that all Glue jobs of a deployment share."""

from __future__ import annotations

from aws_cdk import Aws, aws_glue
from constructs import Construct

from cdclake.stacks.constructs.custom_resource import CdclakeResource
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.grant import Grant

_Security = aws_glue.CfnSecurityConfiguration


class GlueNetwork(Construct):
    """Connection into the first private subnet, and security configuration with our key.

    Glue runs all workers in one subnet. Runbook keeper-gave-up: use another when its zone fails.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        security_group: str,
        context: DeploymentContext,
    ) -> None:
        super().__init__(scope, construct_id)
        self.connection = f"{context.prefix}-jobs"
        # The operator may move the connection to another subnet when the first one's zone fails.
        self.subnet_ids = context.subnet_ids
        self.security_group = security_group
        place = aws_glue.CfnConnection.PhysicalConnectionRequirementsProperty(
            subnet_id=context.subnet_ids[0],
            security_group_id_list=[security_group],
            # Glue rejects a wrong zone, and maybe a missing one, only when a job runs.
            availability_zone=self._zone(context),
        )
        aws_glue.CfnConnection(
            self,
            "Network",
            catalog_id=Aws.ACCOUNT_ID,
            connection_input=aws_glue.CfnConnection.ConnectionInputProperty(
                name=self.connection,
                description="The private network of the lake",
                connection_type="NETWORK",
                connection_properties={},
                physical_connection_requirements=place,
            ),
        )
        self.security_configuration = f"{context.prefix}-jobs"
        _Security(
            self,
            "Security",
            name=self.security_configuration,
            encryption_configuration=_by(context.key_arn),
        )

    def _zone(self, context: DeploymentContext) -> str:
        """Return the availability zone of the jobs' subnet; look it up for an existing network."""
        if context.zones:
            return context.zones[0]
        found = CdclakeResource(
            self,
            "Zone",
            what="Zone",
            properties={"SubnetId": context.subnet_ids[0]},
            grants=[
                Grant(
                    actions=["ec2:DescribeSubnets"],
                    on=["*"],
                    because="EC2 has no resource-level permissions for this read-only call",
                )
            ],
            context=context,
        )
        return found.resource.get_att_string("AvailabilityZone")


def _by(key_arn: str) -> aws_glue.CfnSecurityConfiguration.EncryptionConfigurationProperty:
    return _Security.EncryptionConfigurationProperty(
        s3_encryptions=[
            _Security.S3EncryptionProperty(s3_encryption_mode="SSE-KMS", kms_key_arn=key_arn)
        ],
        cloud_watch_encryption=_Security.CloudWatchEncryptionProperty(
            cloud_watch_encryption_mode="SSE-KMS", kms_key_arn=key_arn
        ),
        # No job uses bookmarks: positions are in the tables' stamps and the checkpoint.
        job_bookmarks_encryption=_Security.JobBookmarksEncryptionProperty(
            job_bookmarks_encryption_mode="CSE-KMS", kms_key_arn=key_arn
        ),
    )
