"""The connectors stack: the sinks of `connectors:` on MSK Connect, one worker each.

A sink continues where it was if it is removed and created again: its progress is in Kafka, under
the name of its consumer group. As that of the Debezium connector its name is fixed, so new jars or
worker settings need `sinks: off` first, which keeps everything but the connectors.
"""

from __future__ import annotations

from aws_cdk import Aws
from constructs import Construct

from cdclake import naming
from cdclake.config.deployment import Deployment
from cdclake.connectors.configuration import configure
from cdclake.connectors.declared import DeclaredConnector, connector_log
from cdclake.connectors.iceberg_sink import SinkAddress
from cdclake.connectors.role_names import role_names
from cdclake.debezium.worker import OWN_PROVIDER, sink_worker_settings
from cdclake.deployed_jobs import SIGNED_BY_IAM
from cdclake.stacks.bundles import build_connector_plugin
from cdclake.stacks.constructs import connect_grants
from cdclake.stacks.constructs.connect_plugin import ConnectPlugin, WorkerConfiguration
from cdclake.stacks.constructs.connector import Connector
from cdclake.stacks.constructs.grant import Grant, through_s3
from cdclake.stacks.lake_stack import LakeOutputs
from cdclake.stacks.network_stack import NetworkOutputs
from cdclake.stacks.pipeline_stack import PipelineStack
from cdclake.stacks.streaming_stack import StreamingOutputs


class ConnectorsStack(PipelineStack):
    """Plugin, worker configuration, role, log group and connector of each declared sink."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        network: NetworkOutputs,
        streaming: StreamingOutputs,
        lake: LakeOutputs,
    ) -> None:
        super().__init__(scope, deployment, "connectors", "sinks next to the stream")
        self._network, self._streaming, self._lake = network, streaming, lake
        brokers = streaming.find_first_brokers(self, network.context)
        for connector in deployment.plan.connectors:
            self._add(connector, Construct(self, f"Sink-{connector.name}"), brokers)

    def _add(self, connector: DeclaredConnector, scope: Construct, brokers: str) -> None:
        name = naming.declared_connector_name(self.deployment.prefix, connector.name)
        address = SinkAddress(
            warehouse=f"s3://{self._lake.warehouse.name}",
            region=Aws.REGION,
            kafka={"bootstrap.servers": brokers, **SIGNED_BY_IAM},
        )
        Connector(
            scope,
            "Connector",
            name=name,
            settings=configure(self.deployment.plan, connector, name, address),
            mcus=connector.mcus,
            plugin=_plugin(scope, connector, name),
            worker=self._worker(scope, connector, name),
            brokers=brokers,
            security_group=self._network.connect.group_id,
            grants=self._grants(connector, name),
            context=self._network.context,
            log=connector_log(connector.name),
            is_on=connector in self.deployment.sinks,
        )

    def _worker(
        self, scope: Construct, connector: DeclaredConnector, name: str
    ) -> WorkerConfiguration:
        settings = sink_worker_settings(
            OWN_PROVIDER if connector.secrets else None, region=Aws.REGION
        )
        # Connect's default of 3 exceeds the brokers of a cluster in two zones.
        for topic in ("config", "offset", "status"):
            settings[f"{topic}.storage.replication.factor"] = str(self._streaming.replicas)
        return WorkerConfiguration(
            scope, "Worker", prefix=name, settings=settings, description="Worker of a sink"
        )

    def _grants(self, connector: DeclaredConnector, name: str) -> list[Grant]:
        plan, key_arn = self.deployment.plan, self._network.context.key_arn
        names = role_names(plan, connector)
        assert names is not None, "`validate` refuses a role that is too long"
        found = self._streaming.grant_sink(
            names.topics, connector=name, control_topic=plan.control_topics.get(connector.name)
        )
        if connector.is_iceberg_sink:
            found += self._lake.grant_append_sinks(names.tables)
            found.append(through_s3(key_arn))
        if connector.secrets:
            found += connect_grants.reads_named_secrets(connector.secrets, key_arn)
        return found


def _plugin(scope: Construct, connector: DeclaredConnector, name: str) -> ConnectPlugin:
    built = build_connector_plugin(connector)
    return ConnectPlugin(
        scope,
        "Plugin",
        prefix=name,
        file=built.path,
        digest=built.digest,
        description=f"Plugin of the connector {connector.name}",
    )
