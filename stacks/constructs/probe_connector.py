"""Outputs with the settings of the connector of `cdclake doctor --probe-connector`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import Aws, CfnOutput
from constructs import Construct

from cdclake import naming
from cdclake.stacks.constructs.connect_plugin import ConnectPlugin, WorkerConfiguration
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.grant import Grant
from cdclake.stacks.constructs.log_group import LogGroup
from cdclake.stacks.constructs.service_role import ServiceRole


class ProbeConnector(Construct):
    """Role and log group of the probe connector; the command creates and deletes the rest.

    The role is not the connector's: it exists without one, is for this name only, and may write no
    topic of the pipeline.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        plugin: ConnectPlugin,
        worker: WorkerConfiguration,
        brokers: str,
        grants: Sequence[Grant],
        context: DeploymentContext,
    ) -> None:
        super().__init__(scope, construct_id)
        name = naming.probe_connector_name(context.prefix)
        own = f"kafkaconnect:{Aws.REGION}:{Aws.ACCOUNT_ID}:connector/{name}/*"
        role = ServiceRole(self, "Role", service="kafkaconnect", for_arn=own, statements=grants)
        LogGroup(self, "Log", context=context, name=naming.probe_connector_log(context.prefix))
        values = {"Role": role.arn, "Plugin": plugin.arn, "Worker": worker.arn, "Brokers": brokers}
        add_probe_outputs(self, values)


def add_probe_outputs(scope: Construct, values: Mapping[str, str]) -> None:
    """Add outputs that the command reads; an output may not show what another stack exports."""
    for key, value in values.items():
        output = CfnOutput(
            scope,
            f"Output{key}",
            value=value,
            description="Read by `cdclake doctor --probe-connector`",
        )
        output.override_logical_id(f"{naming.PROBE_OUTPUTS}{key}")
