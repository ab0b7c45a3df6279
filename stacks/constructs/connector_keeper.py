"""The connector keeper: a function on a schedule that restarts a failed task."""

from __future__ import annotations

from collections.abc import Sequence

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
_GENERATED_END = "MSK Connect generates the end of a connector's ARN; its name is fixed"


class ConnectorKeeper(Construct):
    """`lambda/connector_keeper`: it restarts the source's connector, and only looks at sinks."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        sinks: Sequence[str],
        schedules: JobSchedules,
        context: DeploymentContext,
    ) -> None:
        super().__init__(scope, construct_id)
        name = naming.connector_name(context.prefix)
        function = LambdaFunction(
            self,
            "Keeper",
            module=_MODULE,
            code=build_function(_MODULE).path,
            environment={"NAME": name, "SINKS": ",".join(sinks), "DIMENSION": context.prefix},
            grants=[*_restarts(name), *_looks_at(sinks), publishes_metrics(NAMESPACE)],
            timeout_s=_TIMEOUT_S,
            context=context,
        )
        # cfn-lint's list of actions lacks RestartConnector, which botocore's model has.
        role = function.node.find_child("Role").node.find_child("Role").node.default_child
        assert isinstance(role, aws_iam.CfnRole)
        role.add_metadata("cfn-lint", {"config": {"ignore_checks": ["W3037"]}})
        schedules.call("Connector", schedule=_EVERY, function_arn=function.arn)


def _connector_arn(name: str) -> str:
    return f"arn:{Aws.PARTITION}:kafkaconnect:{Aws.REGION}:{Aws.ACCOUNT_ID}:connector/{name}/*"


def _looks_at(sinks: Sequence[str]) -> list[Grant]:
    if not sinks:
        return []
    return [
        Grant(
            actions=["kafkaconnect:ListConnectorOperations"],
            on=[_connector_arn(name) for name in sinks],
            because=_GENERATED_END,
        )
    ]


def _restarts(name: str) -> list[Grant]:
    return [
        Grant(
            actions=[
                "kafkaconnect:ListConnectorOperations",
                "kafkaconnect:RestartConnector",
            ],
            on=[_connector_arn(name)],
            because=_GENERATED_END,
        ),
        Grant(
            actions=["cloudwatch:GetMetricStatistics", "kafkaconnect:ListConnectors"],
            on=["*"],
            because="these read-only calls have no resource-level permissions",
        ),
    ]
