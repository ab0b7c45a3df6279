"""Where a stream of Firehose reads: what it is told of it, and what its role may do there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from aws_cdk import Aws, aws_kinesisfirehose
from constructs import Construct

from cdclake.stacks.constructs.grant import Grant, arn
from cdclake.stacks.constructs.nag_suppressions import suppress

_Stream = aws_kinesisfirehose.CfnDeliveryStream
# All that Kafka keeps: what came before the stream was there is not skipped, and the log may hold
# an event twice.
_EARLIEST = "1970-01-01T00:00:00Z"


class DeliverySource(Protocol):
    """One of Firehose's sources."""

    def grants(self) -> Sequence[Grant]:
        """What the stream's role needs to read it."""

    def properties(self, role_arn: str) -> dict[str, Any]:
        """What the stream is made with."""

    def suppress(self, stream: Construct) -> None:
        """Acknowledge what rules ask of streams of other sources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTopicSource:
    """A topic of MSK, read by private links; `cluster` is `name/id` as in ARNs, the id maybe `*`.

    Source of its grants: Firehose's developer guide, "Configure source settings for Amazon MSK",
    and the Service Authorization Reference.
    """

    cluster_arn: str
    cluster: str
    topic: str

    def grants(self) -> Sequence[Grant]:
        """Finding the brokers, signing in there, and reading this topic."""
        made_up = "MSK makes up the end of a cluster's ARN; the cluster's name is ours"
        return [
            Grant(
                actions=[
                    "kafka:DescribeCluster",
                    "kafka:DescribeClusterV2",
                    "kafka:GetBootstrapBrokers",
                    "kafka-cluster:Connect",
                ],
                on=[self.cluster_arn],
            ),
            Grant(
                actions=[
                    "kafka-cluster:DescribeTopic",
                    "kafka-cluster:DescribeTopicDynamicConfiguration",
                    "kafka-cluster:ReadData",
                ],
                on=[arn("kafka", f"topic/{self.cluster}/{self.topic}")],
                because=made_up,
            ),
            Grant(
                actions=["kafka-cluster:DescribeGroup"],
                on=[arn("kafka", f"group/{self.cluster}/*")],
                because="Firehose names its consumer group itself, and does not say how",
            ),
        ]

    def properties(self, role_arn: str) -> dict[str, Any]:
        """Beginning with what Kafka still keeps; none of it can be changed later."""
        source = _Stream.MSKSourceConfigurationProperty(
            msk_cluster_arn=self.cluster_arn,
            topic_name=self.topic,
            read_from_timestamp=_EARLIEST,
            authentication_configuration=_Stream.AuthenticationConfigurationProperty(
                connectivity="PRIVATE", role_arn=role_arn
            ),
        )
        return {"delivery_stream_type": "MSKAsSource", "msk_source_configuration": source}

    def suppress(self, stream: Construct) -> None:
        """Firehose encrypts what it collects by a key of ours only if it is put there directly."""
        suppress(stream, "KDF1", "Firehose accepts a key for Direct PUT only; Kafka has the key")


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectPutSource:
    """Whoever may put records into the stream, which Firehose keeps under our key."""

    key_arn: str

    def grants(self) -> Sequence[Grant]:
        """None: it reads nothing."""
        return []

    def properties(self, role_arn: str) -> dict[str, Any]:
        """The key is used by a grant that Firehose makes for whoever deploys."""
        del role_arn
        encryption = _Stream.DeliveryStreamEncryptionConfigurationInputProperty(
            key_type="CUSTOMER_MANAGED_CMK", key_arn=self.key_arn
        )
        return {
            "delivery_stream_type": "DirectPut",
            "delivery_stream_encryption_configuration_input": encryption,
        }

    def suppress(self, stream: Construct) -> None:
        """Nothing: it has its key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KinesisStreamSource:
    """A stream of Kinesis under our key."""

    stream_arn: str
    key_arn: str

    def grants(self) -> Sequence[Grant]:
        """Reading it.

        Source: Firehose's developer guide, "Grant Firehose access to an Amazon S3 destination".
        """
        return [
            Grant(
                actions=[
                    "kinesis:DescribeStream",
                    "kinesis:GetRecords",
                    "kinesis:GetShardIterator",
                    "kinesis:ListShards",
                ],
                on=[self.stream_arn],
            ),
            Grant(
                actions=["kms:Decrypt"],
                on=[self.key_arn],
                only_if={"StringEquals": {"kms:ViaService": f"kinesis.{Aws.REGION}.amazonaws.com"}},
            ),
        ]

    def properties(self, role_arn: str) -> dict[str, Any]:
        """Firehose begins with the oldest record that Kinesis keeps."""
        source = _Stream.KinesisStreamSourceConfigurationProperty(
            kinesis_stream_arn=self.stream_arn, role_arn=role_arn
        )
        return {
            "delivery_stream_type": "KinesisStreamAsSource",
            "kinesis_stream_source_configuration": source,
        }

    def suppress(self, stream: Construct) -> None:
        """As of a topic."""
        suppress(stream, "KDF1", "Firehose accepts a key for Direct PUT only; Kinesis has the key")
