"""Sources of a Firehose stream: their properties and grants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from aws_cdk import Aws, aws_kinesisfirehose
from constructs import Construct

from cdclake.stacks.constructs.grant import Grant, arn, finds_brokers
from cdclake.stacks.constructs.nag_suppressions import suppress

_Stream = aws_kinesisfirehose.CfnDeliveryStream
# Read everything that Kafka retains, so that no earlier event is skipped. The changelog may then
# contain an event twice.
_EARLIEST = "1970-01-01T00:00:00Z"


class DeliverySource(Protocol):
    """Source of a Firehose stream."""

    def grants(self) -> Sequence[Grant]:
        """Return the grants to read the source."""

    def properties(self, role_arn: str) -> dict[str, Any]:
        """Return the properties that configure the source."""

    def suppress(self, stream: Construct) -> None:
        """Suppress findings that do not apply to this source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaTopicSource:
    """Topic of MSK, read through private links.

    `cluster` is `name/id` as in the ARNs of topics; the id may be `*`.

    Source of its grants: Firehose's developer guide, "Configure source settings for Amazon MSK",
    and the Service Authorization Reference.
    """

    cluster_arn: str
    cluster: str
    topic: str

    def grants(self) -> Sequence[Grant]:
        """Return the grants to find the brokers, connect, and read this topic."""
        generated = "MSK generates the end of a cluster's ARN; the cluster name is fixed"
        return [
            Grant(
                actions=[
                    "kafka:DescribeCluster",
                    "kafka:DescribeClusterV2",
                    "kafka-cluster:Connect",
                ],
                on=[self.cluster_arn],
            ),
            finds_brokers(),
            Grant(
                actions=[
                    "kafka-cluster:DescribeTopic",
                    "kafka-cluster:DescribeTopicDynamicConfiguration",
                    "kafka-cluster:ReadData",
                ],
                on=[arn("kafka", f"topic/{self.cluster}/{self.topic}")],
                because=generated,
            ),
            Grant(
                actions=["kafka-cluster:DescribeGroup"],
                on=[arn("kafka", f"group/{self.cluster}/*")],
                because="Firehose chooses the name of its consumer group, and does not document it",
            ),
        ]

    def properties(self, role_arn: str) -> dict[str, Any]:
        """Return the topic, read from its earliest record; no property can be changed later."""
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
        """Suppress the rule on server-side encryption, which Firehose has for Direct PUT only."""
        suppress(stream, "KDF1", "Firehose accepts a key for Direct PUT only; Kafka has the key")


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectPutSource:
    """Direct PUT: permitted clients put records, which Firehose encrypts with our key."""

    key_arn: str

    def grants(self) -> Sequence[Grant]:
        """Return no grants: the stream reads nothing."""
        return []

    def properties(self, role_arn: str) -> dict[str, Any]:
        """Return the encryption; Firehose uses the key by a grant for the deploying principal."""
        del role_arn
        encryption = _Stream.DeliveryStreamEncryptionConfigurationInputProperty(
            key_type="CUSTOMER_MANAGED_CMK", key_arn=self.key_arn
        )
        return {
            "delivery_stream_type": "DirectPut",
            "delivery_stream_encryption_configuration_input": encryption,
        }

    def suppress(self, stream: Construct) -> None:
        """Suppress nothing: the stream is encrypted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KinesisStreamSource:
    """Kinesis stream under our key."""

    stream_arn: str
    key_arn: str

    def grants(self) -> Sequence[Grant]:
        """Return the grants to read the Kinesis stream.

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
        """Return the Kinesis stream; Firehose skips what is put before it is active.

        It starts at the latest record, and has no setting for that. Source: Firehose's developer
        guide, writing-with-kinesis-streams.
        """
        source = _Stream.KinesisStreamSourceConfigurationProperty(
            kinesis_stream_arn=self.stream_arn, role_arn=role_arn
        )
        return {
            "delivery_stream_type": "KinesisStreamAsSource",
            "kinesis_stream_source_configuration": source,
        }

    def suppress(self, stream: Construct) -> None:
        """Suppress the rule on server-side encryption, which Firehose has for Direct PUT only."""
        suppress(stream, "KDF1", "Firehose accepts a key for Direct PUT only; Kinesis has the key")
