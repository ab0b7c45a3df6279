"""The tables stacks: one per shard, with the Kafka topics of the shard's tables."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import RemovalPolicy
from constructs import Construct

from cdclake.config.deployment import Deployment
from cdclake.plan import Table
from cdclake.stacks.constructs.topic import Topic
from cdclake.stacks.pipeline_stack import PipelineStack
from cdclake.stacks.streaming_stack import StreamingOutputs


class TablesStack(PipelineStack):
    """Topics of the tables that the pipeline file assigns to one shard.

    The shard is declared, never computed: if a table moved to another shard, CloudFormation would
    delete its topic in one stack and create it in the other.
    """

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        shard: int,
        tables: Sequence[Table],
        streaming: StreamingOutputs,
        kept: RemovalPolicy,
    ) -> None:
        super().__init__(scope, deployment, f"tables-{shard}", f"Kafka topics of shard {shard}")
        shared = {each.topic for each in deployment.plan.deliveries if each.routed}
        for table in tables:
            if table.topic in shared:  # a domain's topic is in the streaming stack
                continue
            Topic(
                self,
                table.topic,  # not the lake's name, which the pipeline file may change
                name=table.topic,
                cluster_arn=streaming.cluster_arn,
                replicas=streaming.replicas,
                durability=streaming.durability,
                kept=kept,
            )
