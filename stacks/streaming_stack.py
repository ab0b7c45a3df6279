"""The streaming stack: Kafka, created or existing, and the topics of the pipeline's own."""

from __future__ import annotations

from constructs import Construct

from cdclake.config.aws_model import IAM_PORT, CreatedKafka, ExistingKafka
from cdclake.config.deployment import Deployment
from cdclake.stacks.constructs.kafka_cluster import FIREHOSE_ACTIONS, KafkaCluster
from cdclake.stacks.constructs.security_groups import ServerGroup
from cdclake.stacks.constructs.topic import Topic
from cdclake.stacks.network_stack import NetworkStack
from cdclake.stacks.pipeline_stack import PipelineStack


class StreamingStack(PipelineStack):
    """The cluster's ARN, how often it keeps a record, and the topics of no single table."""

    def __init__(self, scope: Construct, deployment: Deployment, *, network: NetworkStack) -> None:
        super().__init__(scope, deployment, "streaming", "Kafka and the pipeline's shared topics")
        self._clients = (network.connect, network.jobs)
        match deployment.aws.kafka.declared:
            case CreatedKafka() as sizes:
                self._create(sizes, network)
            case ExistingKafka() as existing:
                self._use(existing, network)
        domains = {each.topic: each.topic for each in deployment.plan.deliveries if each.routed}
        for construct_id, name in {**deployment.plan.own_topics, **domains}.items():
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
            is_private=self.deployment.aws.private_connectivity == "on",
            security_group=group.group_id,
            ground=network.ground,
        )
        self.cluster_arn, self.replicas = cluster.arn, cluster.replicas
        self.cluster_path = f"{network.ground.prefix}/*"

    def _use(self, existing: ExistingKafka, network: NetworkStack) -> None:
        self.cluster_arn, self.replicas = existing.cluster_arn, existing.replicas
        self.cluster_path = existing.cluster_arn.partition(":cluster/")[2]
        for client in self._clients:
            client.may_reach(self, server=existing.security_group, port=IAM_PORT)
        groups = ", ".join(client.group_id for client in self._clients)
        network.ask_owner(
            "KafkaOwner",
            f"{existing.security_group} must admit {groups} on port {IAM_PORT}; the cluster needs"
            " IAM access control, Kafka 3.6 or newer, and a message.max.bytes that fits large rows",
        )
        if self.deployment.plan.deliveries:
            network.ask_owner(
                "KafkaOwnerForFirehose",
                f"{existing.cluster_arn} needs multi-VPC private connectivity with IAM, and a"
                f" cluster policy that allows firehose.amazonaws.com {', '.join(FIREHOSE_ACTIONS)};"
                " then set `aws: {private_connectivity: on}`",
            )
