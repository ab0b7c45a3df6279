"""The CDC stack: Debezium on MSK Connect, configured like the local worker."""

from __future__ import annotations

from aws_cdk import Aws, CfnOutput
from constructs import Construct

from cdclake import naming
from cdclake.config.deployment import Deployment
from cdclake.debezium.avro_converter import plugin_profile
from cdclake.debezium.deployed_connector import deployed_config
from cdclake.debezium.topics import OFFSETS_SETTINGS
from cdclake.debezium.worker import (
    AWS_PROVIDER,
    OWN_PROVIDER,
    worker_settings,
)
from cdclake.places import user_project
from cdclake.stacks.bundles import build_plugin, build_preparation
from cdclake.stacks.constructs.connect_plugin import ConnectPlugin, WorkerConfiguration
from cdclake.stacks.constructs.connector import Connector
from cdclake.stacks.constructs.grant import Grant
from cdclake.stacks.constructs.probe_connector import ProbeConnector
from cdclake.stacks.constructs.source_preparation import Preparation
from cdclake.stacks.constructs.topic import Topic
from cdclake.stacks.lake_stack import LakeOutputs
from cdclake.stacks.network_stack import NetworkOutputs
from cdclake.stacks.pipeline_stack import PipelineStack
from cdclake.stacks.source_stack import SourceOutputs
from cdclake.stacks.streaming_stack import StreamingOutputs

# Half of an MCU's 4 GB: MSK Connect does not document how much of it is heap.
_MCU_HEAP_BYTES = 2 * 1024**3


class CdcStack(PipelineStack):
    """Prepared source, plugin, worker configuration and offsets topic, and the connector if on."""

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        network: NetworkOutputs,
        source: SourceOutputs,
        streaming: StreamingOutputs,
        lake: LakeOutputs,
    ) -> None:
        super().__init__(scope, deployment, "cdc", "source preparation and Debezium connector")
        self._network, self._source, self._streaming = network, source, streaming
        plugin, worker = self._add_plugin(), self._add_worker()
        offsets, prepared = self._add_offsets(), self._add_preparation(lake)
        brokers = streaming.find_first_brokers(self, network.context)
        self._add_probe(plugin, worker, brokers)
        if deployment.aws.connector == "on":
            connector = self._add_connector(plugin, worker, brokers)
            # Created after both, and deleted before the source is cleaned up: the slot must be
            # inactive then.
            connector.node.add_dependency(offsets, prepared)
            self._check_made_of(connector.made_of)

    def _add_plugin(self) -> ConnectPlugin:
        jar = self.deployment.aws.connect.provider_jar
        provider = user_project() / jar if jar else None
        if provider is not None and not provider.is_file():
            raise self.deployment.refusal(
                ("aws", "connect", "provider_jar"),
                f"jar {provider} not found",
                "write the jar's path relative to the project folder, or remove the key",
            )
        built = build_plugin(provider, plugin_profile(self.deployment.plan.registry))
        return ConnectPlugin(
            self, "Plugin", prefix=self.deployment.prefix, file=built.path, digest=built.digest
        )

    def _add_worker(self) -> WorkerConfiguration:
        own = self.deployment.aws.connect.provider_jar is None
        settings = worker_settings(OWN_PROVIDER if own else AWS_PROVIDER, region=Aws.REGION)
        # By default each connector has its own topic, so a recreated one would lose its offsets.
        settings["offset.storage.topic"] = self._offsets
        # Connect's default of 3 exceeds the brokers of a cluster in two zones.
        for topic in ("config", "status"):
            settings[f"{topic}.storage.replication.factor"] = str(self._streaming.replicas)
        return WorkerConfiguration(self, "Worker", prefix=self.deployment.prefix, settings=settings)

    @property
    def _offsets(self) -> str:
        return naming.offsets_topic(self.deployment.plan.name)

    def _add_offsets(self) -> Topic:
        return Topic(
            self,
            "Offsets",
            name=self._offsets,
            cluster_arn=self._streaming.cluster_arn,
            replicas=self._streaming.replicas,
            durability=self._streaming.durability,
            kept=self._network.context.kept,
            settings=OFFSETS_SETTINGS,
        )

    def _add_preparation(self, lake: LakeOutputs) -> Preparation:
        source, built = self._source, build_preparation(self.deployment.plan)
        return Preparation(
            self,
            "Preparation",
            file=built.path,
            digest=built.digest,
            environment={
                "HOST": source.endpoint,
                "PORT": str(source.port),
                "DATABASE": self.deployment.plan.source_database,
                "ADMIN_SECRET": source.admin_secret_arn,
                "LOGIN_SECRET": source.login_name,
            },
            login_version=self.deployment.aws.connect.login_version,
            epoch=self.deployment.aws.connect.epoch,
            grants=source.grant_read_admin(),
            security_group=self._network.functions.group_id,
            state=lake.state,
            context=self._network.context,
        )

    def _add_probe(self, plugin: ConnectPlugin, worker: WorkerConfiguration, brokers: str) -> None:
        name = naming.probe_connector_name(self.deployment.prefix)
        grants = [
            *self._streaming.grant_keep_state(offsets=self._offsets, connector=name),
            *self._source.grant_read_login_and_salt(),
        ]
        ProbeConnector(
            self,
            "ConnectProbe",
            plugin=plugin,
            worker=worker,
            brokers=brokers,
            grants=grants,
            context=self._network.context,
        )

    def _add_connector(
        self, plugin: ConnectPlugin, worker: WorkerConfiguration, brokers: str
    ) -> Connector:
        name = naming.connector_name(self.deployment.prefix)
        return Connector(
            self,
            "Connector",
            name=name,
            settings=self._settings(),
            mcus=self.deployment.aws.connect.mcus,
            plugin=plugin,
            worker=worker,
            brokers=brokers,
            security_group=self._network.connect.group_id,
            grants=self._grants(name),
            context=self._network.context,
        )

    def _settings(self) -> dict[str, str]:
        """Return the local configuration with the address and certificates of the source on AWS."""
        connect = self.deployment.aws.connect
        return deployed_config(
            self.deployment.plan,
            self.deployment.prefix,
            source=(self._source.endpoint, self._source.port),
            login=self._source.login_name,
            epoch=connect.epoch,
            # Whatever the size: MSK Connect changes the size or settings, not both.
            heap_bytes=_MCU_HEAP_BYTES,
            region=Aws.REGION,
        )

    def _grants(self, connector: str) -> list[Grant]:
        plan = self.deployment.plan
        own = [topic for topic in plan.own_topics.values() if not topic.startswith(f"{plan.name}.")]
        return [
            *self._streaming.grant_produce(others=own, offsets=self._offsets, connector=connector),
            *self._source.grant_read_login_and_salt(),
            *self._streaming.grant_register_schemas(),
        ]

    def _check_made_of(self, made_of: str) -> None:
        """Refuse to replace the running connector, which the pipeline file names as `made_of`."""
        running = self.deployment.aws.connect.made_of
        CfnOutput(
            self,
            "ConnectorMadeOf",
            value=made_of,
            description="Set as `aws: connect: made_of:` to reject connector replacements",
        )
        if running not in (None, made_of):
            raise self.deployment.refusal(
                ("aws", "connect", "made_of"),
                f"this change would replace the running connector (made_of: {running}) with a new"
                f" one (made_of: {made_of})",
                "deploy with `connector: off` first, then with `connector: on` and"
                f" `made_of: {made_of}`; the new connector continues at the stored offsets",
            )
