"""The streaming stack: Kafka, created or existing, and the topics of the pipeline's own."""

from __future__ import annotations

from constructs import Construct

from cdclake.config.aws_model import IAM_PORT, CreatedKafka, ExistingKafka
from cdclake.config.deployment import Deployment
from stacks.constructs.kafka_cluster import KafkaCluster
from stacks.constructs.security_groups import ServerGroup
from stacks.constructs.topic import Topic
from stacks.network_stack import NetworkStack
from stacks.pipeline_stack import PipelineStack


class StreamingStack(PipelineStack):
    """The cluster's ARN, how often it keeps each record, and the topics that no table owns."""

    def __init__(self, scope: Construct, deployment: Deployment, *, network: NetworkStack) -> None:
        super().__init__(scope, deployment, "streaming", "Kafka and the pipeline's own topics")
        self._clients = (network.connect, network.jobs)
        match deployment.aws.kafka.declared:
            case CreatedKafka() as sizes:
                self._create(sizes, network)
            case ExistingKafka() as existing:
                self._use(existing, network)
        for construct_id, name in deployment.plan.own_topics.items():
            Topic(
                self,
                construct_id,
                name=name,
                cluster_arn=self.cluster_arn,
                replicas=self.replicas,
                kept=network.ground.kept,
            )

    def _create(self, sizes: CreatedKafka, network: NetworkStack) -> None:
        group = ServerGroup(self, "Brokers", vpc_id=network.ground.vpc_id, who="brokers of Kafka")
        group.admit(*self._clients, port=IAM_PORT)
        group.admit_itself()
        cluster = KafkaCluster(
            self,
            "Kafka",
            sizes=sizes,
            security_group=group.group_id,
            ground=network.ground,
        )
        self.cluster_arn, self.replicas = cluster.arn, cluster.replicas

    def _use(self, existing: ExistingKafka, network: NetworkStack) -> None:
        self.cluster_arn, self.replicas = existing.cluster_arn, existing.replicas
        for client in self._clients:
            client.may_reach(self, server=existing.security_group, port=IAM_PORT)
        groups = ", ".join(client.group_id for client in self._clients)
        network.ask_owner(
            "KafkaOwner",
            f"{existing.security_group} must admit {groups} on port {IAM_PORT}; the cluster needs"
            " IAM access, Kafka 3.6 or newer, and message.max.bytes for large rows",
        )
