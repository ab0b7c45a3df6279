"""One Kafka topic, with the settings of the local lake and those for several brokers."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping

from aws_cdk import RemovalPolicy, aws_msk
from constructs import Construct

from cdclake.debezium.topics import PARTITIONS, TOPIC_SETTINGS


class Topic(Construct):
    """Topic with immutable name and replication factor: a change would delete its records.

    Its settings are base64 of JSON, as Terraform's AWS provider sends and reads them
    (internal/service/kafka/topic.go, whose acceptance tests run on AWS).
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        name: str,
        cluster_arn: str,
        replicas: int,
        durability: Mapping[str, str],
        kept: RemovalPolicy,
        settings: Mapping[str, str] = TOPIC_SETTINGS,
    ) -> None:
        super().__init__(scope, construct_id)
        topic = aws_msk.CfnTopic(
            self,
            "Topic",
            cluster_arn=cluster_arn,
            topic_name=name,
            partition_count=PARTITIONS,
            replication_factor=replicas,
            configs=base64.b64encode(json.dumps({**settings, **durability}).encode()).decode(),
        )
        topic.apply_removal_policy(kept)
