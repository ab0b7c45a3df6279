"""The streaming stack: Kafka, created or existing, and the topics that tables share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import aws_glue
from constructs import Construct

from cdclake.config.deployment import Deployment
from cdclake.config.kafka_model import IAM_PORT, CreatedKafka, ExistingKafka
from cdclake.debezium.topics import durable_settings
from cdclake.plan import GLUE_REGISTRY
from cdclake.stacks.constructs import connect_grants, job_grants
from cdclake.stacks.constructs.deployment_context import DeploymentContext
from cdclake.stacks.constructs.first_brokers import first_brokers
from cdclake.stacks.constructs.grant import Grant, finds_brokers, joins_cluster
from cdclake.stacks.constructs.kafka_cluster import KafkaCluster
from cdclake.stacks.constructs.security_groups import ServerGroup
from cdclake.stacks.constructs.topic import Topic
from cdclake.stacks.network_stack import NetworkOutputs
from cdclake.stacks.pipeline_stack import PipelineStack


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamingOutputs:
    """Kafka cluster of the deployment, and the grants on the pipeline's topics."""

    cluster_arn: str
    cluster_path: str  # `name/id` as in the ARNs of topics; the id may be `*`
    replicas: int
    pipeline: str
    is_express: bool  # MSK Express fixes the replication of all topics
    registry: str = ""  # name of the Glue registry for events as Avro; empty without one

    @property
    def durability(self) -> Mapping[str, str]:
        """Settings of each topic for the failure of a broker."""
        return {} if self.is_express else durable_settings(self.replicas)

    def grant_describe_topics(self) -> list[Grant]:
        """Allow reading the first and last offsets of the pipeline's topics."""
        return job_grants.describes_topics(
            cluster_arn=self.cluster_arn, cluster=self.cluster_path, pipeline=self.pipeline
        )

    def grant_read_topics(self, groups: str) -> list[Grant]:
        """Allow consuming the pipeline's topics in consumer groups with this prefix."""
        return job_grants.reads_topics(
            cluster_arn=self.cluster_arn,
            cluster=self.cluster_path,
            pipeline=self.pipeline,
            groups=groups,
        )

    def grant_read_markers(self, topic: str, groups: str) -> list[Grant]:
        """Allow consuming the topic of the heartbeat table."""
        return [
            joins_cluster(self.cluster_arn),
            *job_grants.reads_topic(cluster=self.cluster_path, topic=topic, groups=groups),
        ]

    def grant_read_offsets(self, topic: str, groups: str) -> list[Grant]:
        """Allow consuming the topic of the connector's offsets."""
        return job_grants.reads_topic(cluster=self.cluster_path, topic=topic, groups=groups)

    def grant_set_offsets(self, topic: str, groups: str) -> list[Grant]:
        """Allow writing the position at which the connector begins."""
        return job_grants.sets_offsets(
            cluster_arn=self.cluster_arn, cluster=self.cluster_path, topic=topic, groups=groups
        )

    def grant_produce(self, *, others: list[str], offsets: str, connector: str) -> list[Grant]:
        """Allow a connector to write the pipeline's and `others` topics and to keep its state."""
        return [
            *connect_grants.writes_topics(self.cluster_path, pipeline=self.pipeline, others=others),
            *self.grant_keep_state(offsets=offsets, connector=connector),
        ]

    def grant_keep_state(self, *, offsets: str, connector: str) -> list[Grant]:
        """Allow a worker to join the cluster and to keep the state of its connector there."""
        return [
            joins_cluster(self.cluster_arn),
            connect_grants.writes_idempotently(self.cluster_arn),
            *connect_grants.keeps_state(self.cluster_path, offsets=offsets, connector=connector),
        ]

    def grant_sink(
        self, topics: Sequence[str], *, connector: str, control_topic: str | None
    ) -> list[Grant]:
        """Allow a sink to read topics, and to commit through its control topic if it has one."""
        found = [
            joins_cluster(self.cluster_arn),
            connect_grants.reads_named_topics(self.cluster_path, topics),
            *connect_grants.keeps_worker_state(self.cluster_path, connector=connector),
        ]
        if control_topic is not None:
            found += connect_grants.commits_in_transactions(
                self.cluster_arn, self.cluster_path, topic=control_topic, connector=connector
            )
        return found

    def grant_register_schemas(self) -> list[Grant]:
        """Allow registering schemas of events as Avro in the Glue registry."""
        return connect_grants.registers_schemas(self.registry) if self.registry else []

    def grant_read_schemas(self) -> list[Grant]:
        """Allow reading the schemas of the tables' events."""
        return job_grants.reads_schemas() if self.registry else []

    def grant_find_brokers(self) -> list[Grant]:
        """Allow reading the addresses of the brokers."""
        return [finds_brokers()]

    def find_first_brokers(self, scope: Construct, context: DeploymentContext) -> str:
        """Look up the brokers for a stack's connectors once, when they are created."""
        return first_brokers(
            scope,
            cluster_arn=self.cluster_arn,
            grants=self.grant_find_brokers(),
            context=context,
        )


class StreamingStack(PipelineStack):
    """Kafka cluster, and the topics that several tables or the connector itself share."""

    def __init__(
        self, scope: Construct, deployment: Deployment, *, network: NetworkOutputs
    ) -> None:
        super().__init__(scope, deployment, "streaming", "Kafka and the pipeline's shared topics")
        self._network, self._clients = network, (network.connect, network.jobs)
        self._registry = self._add_registry()
        match deployment.aws.kafka.declared:
            case CreatedKafka() as sizes:
                self.outputs = self._create(sizes)
            case ExistingKafka() as existing:
                self.outputs = self._use(existing)
        domains = {each.topic: each.topic for each in deployment.plan.deliveries if each.routed}
        plan = deployment.plan
        control = {f"Control-{name}": topic for name, topic in plan.control_topics.items()}
        for construct_id, name in {**plan.own_topics, **domains, **control}.items():
            Topic(
                self,
                construct_id,
                name=name,
                cluster_arn=self.outputs.cluster_arn,
                replicas=self.outputs.replicas,
                durability=self.outputs.durability,
                kept=network.context.kept,
            )

    def _add_registry(self) -> str:
        """Add the Glue registry for events as Avro; return its name, empty without one."""
        if self.deployment.plan.registry != GLUE_REGISTRY:
            return ""
        registry = aws_glue.CfnRegistry(
            self,
            "Registry",
            name=self.deployment.prefix,
            description="Schemas of the tables' events, which the connector registers",
        )
        registry.apply_removal_policy(self._network.context.kept)
        return self.deployment.prefix

    def _create(self, sizes: CreatedKafka) -> StreamingOutputs:
        context = self._network.context
        group = ServerGroup(self, "Brokers", vpc_id=context.vpc_id, who="brokers of Kafka")
        group.admit(*self._clients, port=IAM_PORT)
        group.admit_itself()
        cluster = KafkaCluster(
            self,
            "Kafka",
            sizes=sizes,
            is_private=self.deployment.aws.private_connectivity == "on",
            security_group=group.group_id,
            context=context,
        )
        path = f"{context.prefix}/*"
        return self._outputs(cluster.arn, path, cluster.replicas, is_express=sizes.is_express)

    def _use(self, existing: ExistingKafka) -> StreamingOutputs:
        for client in self._clients:
            client.may_reach(self, server=existing.security_group, port=IAM_PORT)
        path = existing.cluster_arn.partition(":cluster/")[2]
        return self._outputs(
            existing.cluster_arn, path, existing.replicas, is_express=existing.express
        )

    def _outputs(self, arn: str, path: str, replicas: int, *, is_express: bool) -> StreamingOutputs:
        return StreamingOutputs(
            cluster_arn=arn,
            cluster_path=path,
            replicas=replicas,
            pipeline=self.deployment.plan.name,
            is_express=is_express,
            registry=self._registry,
        )
