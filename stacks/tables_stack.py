"""A shard of the tables: what each of them needs of its own."""

from __future__ import annotations

from collections.abc import Sequence

from constructs import Construct

from cdclake.config.deployment import Deployment
from cdclake.plan import Table
from cdclake.stacks.constructs.topic import Topic
from cdclake.stacks.network_stack import NetworkStack
from cdclake.stacks.pipeline_stack import PipelineStack
from cdclake.stacks.streaming_stack import StreamingStack


class TablesStack(PipelineStack):
    """The topics of the tables that the pipeline file puts into this shard.

    A table never moves by itself: it would be deleted in one stack and created in the other.
    """

    def __init__(
        self,
        scope: Construct,
        deployment: Deployment,
        *,
        shard: int,
        tables: Sequence[Table],
        network: NetworkStack,
        streaming: StreamingStack,
    ) -> None:
        super().__init__(scope, deployment, f"tables-{shard}", f"Kafka topics of shard {shard}")
        shared = {each.topic for each in deployment.plan.deliveries if each.routed}
        for table in tables:
            if table.topic in shared:  # with tables of other shards
                continue
            Topic(
                self,
                table.topic,  # what Kafka knows it by: the lake's name may be declared otherwise
                name=table.topic,
                cluster_arn=streaming.cluster_arn,
                replicas=streaming.replicas,
                kept=network.ground.kept,
            )
