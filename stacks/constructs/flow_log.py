"""The VPC's flow log of rejected connections, to debug connectivity."""

from __future__ import annotations

from aws_cdk import Aws, aws_ec2, aws_iam
from constructs import Construct

from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.log_group import LogGroup
from cdclake.stacks.constructs.service_role import ServiceRole


class FlowLog(Construct):
    """Flow log of rejected connections: logging all Kafka traffic would cost more than Kafka."""

    def __init__(self, scope: Construct, construct_id: str, *, context: DeploymentContext) -> None:
        super().__init__(scope, construct_id)
        group = LogGroup(self, "Log", context=context)
        writer = ServiceRole(
            self,
            "Writer",
            service="vpc-flow-logs",
            for_arn=f"ec2:{Aws.REGION}:{Aws.ACCOUNT_ID}:vpc-flow-log/*",
            statements=[
                aws_iam.PolicyStatement(
                    actions=[
                        "logs:CreateLogStream",
                        "logs:DescribeLogStreams",
                        "logs:PutLogEvents",
                    ],
                    resources=[group.arn],
                )
            ],
        )
        aws_ec2.CfnFlowLog(
            self,
            "Refused",
            resource_id=context.vpc_id,
            resource_type="VPC",
            traffic_type="REJECT",
            log_destination_type="cloud-watch-logs",
            log_group_name=group.name,
            deliver_logs_permission_arn=writer.arn,
        )
