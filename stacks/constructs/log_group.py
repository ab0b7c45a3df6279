"""Log groups, encrypted with our key and with the declared retention."""

from __future__ import annotations

from aws_cdk import RemovalPolicy, aws_logs
from constructs import Construct

from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.grant import Grant


class LogGroup(Construct):
    """One log group; set `name` if the service that writes to it prescribes one."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        context: DeploymentContext,
        name: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        group = aws_logs.CfnLogGroup(
            self,
            "Group",
            log_group_name=name,
            retention_in_days=context.log_days,
            kms_key_id=context.key_arn,
        )
        # Logs are not user data, and a retained named group would block its next creation.
        group.apply_removal_policy(RemovalPolicy.DESTROY)
        self.name, self.arn = group.ref, group.attr_arn

    def written_to(self) -> Grant:
        """Return the grant to write to the group."""
        return Grant(actions=["logs:CreateLogStream", "logs:PutLogEvents"], on=[self.arn])
