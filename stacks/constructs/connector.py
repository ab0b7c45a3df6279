"""A connector on MSK Connect: one worker, with a fixed name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aws_cdk import Aws, aws_kafkaconnect
from constructs import Construct

from cdclake.config import versions
from cdclake.stacks.constructs.connect_plugin import ConnectPlugin, WorkerConfiguration
from cdclake.stacks.constructs.content_hash import content_hash
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.grant import Grant
from cdclake.stacks.constructs.log_group import LogGroup
from cdclake.stacks.constructs.service_role import ServiceRole

_Connector = aws_kafkaconnect.CfnConnector


class Connector(Construct):
    """Connector whose settings and size change in place; any other change would replace it.

    Connect stores offsets by the connector's name, and CloudFormation creates the replacement
    before it deletes the old connector. Two connectors cannot share a name, so a replacement
    fails. `made_of` identifies the replacing properties, so that synth can refuse the change.
    Without `is_on` there are only role and log group, for a connector that is created later.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        settings: Mapping[str, str],
        mcus: int,
        plugin: ConnectPlugin,
        worker: WorkerConfiguration,
        brokers: str,
        security_group: str,
        grants: Sequence[Grant],
        context: DeploymentContext,
        log: str = "connect",
        is_on: bool = True,
    ) -> None:
        super().__init__(scope, construct_id)
        own = f"kafkaconnect:{Aws.REGION}:{Aws.ACCOUNT_ID}:connector/{name}/*"
        role = ServiceRole(self, "Role", service="kafkaconnect", for_arn=own, statements=grants)
        fixed = {
            "connector_name": name,
            "kafka_connect_version": versions.KAFKA_CONNECT,
            "service_execution_role_arn": role.arn,
            "kafka_cluster": _cluster(brokers, security_group, context),
            **_client_authentication(),
            **_plugin_and_worker(plugin, worker),
            "log_delivery": self._log_delivery(context, log),
        }
        if is_on:
            connector = _Connector(
                self,
                "Connector",
                **fixed,
                capacity=_one_worker(mcus),
                connector_configuration=dict(settings),
            )
            role.users.append(connector)  # a sink reads its tables when it starts
        # `fixed` only refers to plugin and worker configuration; their names identify the content.
        self.made_of = content_hash(self, [fixed, plugin.name, worker.name])

    def _log_delivery(
        self, context: DeploymentContext, log: str
    ) -> aws_kafkaconnect.CfnConnector.LogDeliveryProperty:
        # Under this prefix log delivery does not count against the account's limit of resource
        # policies for CloudWatch Logs.
        group = LogGroup(
            self, "Log", context=context, name=f"/aws/vendedlogs/{context.prefix}/{log}"
        )
        to_group = _Connector.CloudWatchLogsLogDeliveryProperty(enabled=True, log_group=group.name)
        return _Connector.LogDeliveryProperty(
            worker_log_delivery=_Connector.WorkerLogDeliveryProperty(cloud_watch_logs=to_group)
        )


def _cluster(
    brokers: str, security_group: str, context: DeploymentContext
) -> aws_kafkaconnect.CfnConnector.KafkaClusterProperty:
    return _Connector.KafkaClusterProperty(
        apache_kafka_cluster=_Connector.ApacheKafkaClusterProperty(
            bootstrap_servers=brokers,
            vpc=_Connector.VpcProperty(
                security_groups=[security_group], subnets=list(context.subnet_ids)
            ),
        )
    )


def _client_authentication() -> dict[str, Any]:
    return {
        "kafka_cluster_client_authentication": (
            _Connector.KafkaClusterClientAuthenticationProperty(authentication_type="IAM")
        ),
        "kafka_cluster_encryption_in_transit": (
            _Connector.KafkaClusterEncryptionInTransitProperty(encryption_type="TLS")
        ),
    }


def _plugin_and_worker(plugin: ConnectPlugin, worker: WorkerConfiguration) -> dict[str, Any]:
    loaded = _Connector.CustomPluginProperty(custom_plugin_arn=plugin.arn, revision=plugin.revision)
    configured = _Connector.WorkerConfigurationProperty(
        worker_configuration_arn=worker.arn, revision=worker.revision
    )
    return {
        "plugins": [_Connector.PluginProperty(custom_plugin=loaded)],
        "worker_configuration": configured,
    }


def _one_worker(mcus: int) -> aws_kafkaconnect.CfnConnector.CapacityProperty:
    """Return provisioned capacity: a slot has one reader, so scaling out is impossible."""
    return _Connector.CapacityProperty(
        provisioned_capacity=_Connector.ProvisionedCapacityProperty(mcu_count=mcus, worker_count=1)
    )
