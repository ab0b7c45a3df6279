"""A Lambda function with its own role and log group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from aws_cdk import aws_lambda, aws_s3_assets
from constructs import Construct

from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.grant import Grant, arn
from cdclake.stacks.constructs.log_group import LogGroup
from cdclake.stacks.constructs.service_role import ServiceRole

_RUNTIME = "python3.14"  # the version that the packages in the zips were fetched for
_Function = aws_lambda.CfnFunction


class LambdaFunction(Construct):
    """Function with a handler of its module; in the VPC if it has a security group."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        module: str,
        handler: str = "handler",
        code: Path,
        environment: Mapping[str, str],
        grants: Sequence[Grant],
        timeout_s: int,
        context: DeploymentContext,
        memory_mb: int = 256,
        security_group: str | None = None,
        name: str | None = None,
        log_name: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self.log = LogGroup(self, "Log", context=context, name=log_name)
        statements = [*grants, self.log.written_to()]
        if security_group is not None:
            statements += _stands_in_network(context, security_group)
        self.role = ServiceRole(self, "Role", service="lambda", statements=statements)
        self.resource = _Function(
            self,
            "Function",
            function_name=name,
            runtime=_RUNTIME,
            architectures=["arm64"],
            handler=f"{module}.{handler}",
            role=self.role.arn,
            timeout=timeout_s,
            memory_size=memory_mb,
            code=self._uploaded(code),
            environment=_Function.EnvironmentProperty(variables=dict(environment)),
            logging_config=_logging_config(self.log),
            vpc_config=_vpc_config(context, security_group),
        )
        self.arn = self.resource.attr_arn

    def _uploaded(self, code: Path) -> aws_lambda.CfnFunction.CodeProperty:
        asset = aws_s3_assets.Asset(self, "Code", path=str(code))
        return _Function.CodeProperty(s3_bucket=asset.s3_bucket_name, s3_key=asset.s3_object_key)


def _logging_config(log: LogGroup) -> aws_lambda.CfnFunction.LoggingConfigProperty:
    return _Function.LoggingConfigProperty(log_group=log.name, log_format="JSON")


def _vpc_config(
    context: DeploymentContext, security_group: str | None
) -> aws_lambda.CfnFunction.VpcConfigProperty | None:
    if security_group is None:
        return None
    return _Function.VpcConfigProperty(
        subnet_ids=list(context.subnet_ids), security_group_ids=[security_group]
    )


def _stands_in_network(context: DeploymentContext, security_group: str) -> list[Grant]:
    """Allow Lambda to create network interfaces in our subnets.

    Source: Lambda's developer guide, "Giving Lambda functions access to resources in an Amazon
    VPC", narrowed as far as Lambda accepts.
    """
    interfaces = arn("ec2", "network-interface/*")
    subnets = [arn("ec2", f"subnet/{subnet}") for subnet in context.subnet_ids]
    return [
        Grant(
            actions=["ec2:CreateNetworkInterface"],
            on=[*subnets, arn("ec2", f"security-group/{security_group}"), interfaces],
            because="an interface has no id before its creation; subnets and group are fixed",
        ),
        Grant(
            actions=[
                "ec2:AssignPrivateIpAddresses",
                "ec2:DeleteNetworkInterface",
                "ec2:UnassignPrivateIpAddresses",
            ],
            on=[arn("ec2", "*/*")],
            because="Lambda requires all resources of the account here, or creates no interfaces",
        ),
        Grant(
            actions=["ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"],
            on=["*"],
            because="EC2 has no resource-level permissions for these read-only calls",
        ),
    ]
