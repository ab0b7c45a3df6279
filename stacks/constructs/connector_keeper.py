"""The connector keeper: a function on a schedule that restarts a failed task."""

from __future__ import annotations

from aws_cdk import Aws, aws_iam
from constructs import Construct

from cdclake import naming
from cdclake.metrics import NAMESPACE
from cdclake.stacks.bundles import build_function
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.function import LambdaFunction
from cdclake.stacks.constructs.grant import Grant
from cdclake.stacks.constructs.job_grants import publishes_metrics
from cdclake.stacks.constructs.job_schedule import JobSchedules

_MODULE = "connector_keeper"
_EVERY = "rate(5 minutes)"
_TIMEOUT_S = 60


class ConnectorKeeper(Construct):
    """`lambda/connector_keeper` with the rights to restart this connector."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        schedules: JobSchedules,
        ground: DeploymentContext,
    ) -> None:
        super().__init__(scope, construct_id)
        name = naming.connector_name(ground.prefix)
        function = LambdaFunction(
            self,
            "Keeper",
            module=_MODULE,
            code=build_function(_MODULE).path,
            environment={"NAME": name, "DIMENSION": ground.prefix},
            grants=[*_restarts(name), publishes_metrics(NAMESPACE)],
            timeout_s=_TIMEOUT_S,
            ground=ground,
        )
        # cfn-lint's list of actions lacks RestartConnector, which botocore's model has.
        role = function.node.find_child("Role").node.find_child("Role").node.default_child
        assert isinstance(role, aws_iam.CfnRole)
        role.add_metadata("cfn-lint", {"config": {"ignore_checks": ["W3037"]}})
        schedules.call("Connector", schedule=_EVERY, function_arn=function.arn)


def _restarts(name: str) -> list[Grant]:
    own = f"arn:{Aws.PARTITION}:kafkaconnect:{Aws.REGION}:{Aws.ACCOUNT_ID}:connector/{name}/*"
    return [
        Grant(
            actions=[
                "kafkaconnect:ListConnectorOperations",
                "kafkaconnect:RestartConnector",
            ],
            on=[own],
            because="MSK Connect generates the end of a connector's ARN; its name is fixed",
        ),
        Grant(
            actions=["cloudwatch:GetMetricStatistics", "kafkaconnect:ListConnectors"],
            on=["*"],
            because="these read-only calls have no resource-level permissions",
        ),
    ]
