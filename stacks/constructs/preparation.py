"""The source made ready for the connector, and left again when the stack is deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from aws_cdk import CustomResource, aws_lambda, aws_s3_assets
from constructs import Construct

from stacks.constructs.grant import Grant, arn
from stacks.constructs.ground import Ground
from stacks.constructs.log_group import LogGroup
from stacks.constructs.service_role import ServiceRole

_RUNTIME = "python3.14"  # what the packages in the zip were fetched for
_TIMEOUT_S = 600  # a lock that a long transaction holds is waited for
_Function = aws_lambda.CfnFunction


class Preparation(Construct):
    """`lambda/prepare_source` in the network, called whenever its zip changes: plan or code."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        file: Path,
        digest: str,
        environment: Mapping[str, str],
        grants: Sequence[Grant],
        security_group: str,
        ground: Ground,
    ) -> None:
        super().__init__(scope, construct_id)
        log = LogGroup(self, "Log", ground=ground)
        code = aws_s3_assets.Asset(self, "Code", path=str(file))
        statements = [*grants, *_stands_in_network(ground, security_group), log.written_to()]
        role = ServiceRole(self, "Role", service="lambda", statements=statements)
        function = _Function(
            self,
            "Function",
            runtime=_RUNTIME,
            architectures=["arm64"],
            handler="prepare_source.handler",
            role=role.arn,
            timeout=_TIMEOUT_S,
            memory_size=512,
            code=_Function.CodeProperty(s3_bucket=code.s3_bucket_name, s3_key=code.s3_object_key),
            environment=_Function.EnvironmentProperty(variables=dict(environment)),
            logging_config=_Function.LoggingConfigProperty(log_group=log.name, log_format="JSON"),
            vpc_config=_Function.VpcConfigProperty(
                subnet_ids=list(ground.subnet_ids), security_group_ids=[security_group]
            ),
        )
        CustomResource(
            self,
            "Resource",
            service_token=function.attr_arn,
            resource_type="Custom::CdclakeSource",
            properties={"Content": digest, **environment},
        )


def _stands_in_network(ground: Ground, security_group: str) -> list[Grant]:
    """What Lambda asks of a function's role to give it addresses in our subnets.

    Source: Lambda's developer guide, "Giving Lambda functions access to resources in an Amazon
    VPC", narrowed as far as it lets.
    """
    interfaces = arn("ec2", "network-interface/*")
    subnets = [arn("ec2", f"subnet/{subnet}") for subnet in ground.subnet_ids]
    return [
        Grant(
            actions=["ec2:CreateNetworkInterface"],
            on=[*subnets, arn("ec2", f"security-group/{security_group}"), interfaces],
            because="an interface has no id before it is made; subnets and group are ours",
        ),
        Grant(
            actions=[
                "ec2:AssignPrivateIpAddresses",
                "ec2:DeleteNetworkInterface",
                "ec2:UnassignPrivateIpAddresses",
            ],
            on=[arn("ec2", "*/*")],
            because="Lambda asks for all resources of the account here, or gives no addresses",
        ),
        Grant(
            actions=["ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets"],
            on=["*"],
            because="EC2 knows no resources for these calls, which only look",
        ),
    ]
