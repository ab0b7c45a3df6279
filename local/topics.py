"""The pipeline's Kafka topics: made beforehand, measured, and read for markers."""

from __future__ import annotations

import json
from collections.abc import Iterable

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from cdclake.debezium.connector import MAX_RECORD_BYTES
from cdclake.errors import ComponentFailed
from cdclake.plan import Plan

_RETENTION_MS = 7 * 24 * 3600 * 1000
_TIMEOUT_S = 20.0
PARTITIONS = 1


def create_topics(kafka: str, plan: Plan) -> None:
    """Create the plan's topics that are not there; no topic creates itself."""
    admin = _admin(kafka)
    existing = set(admin.list_topics(timeout=_TIMEOUT_S).topics)
    settings = {
        "retention.ms": str(_RETENTION_MS),
        "cleanup.policy": "delete",
        "max.message.bytes": str(MAX_RECORD_BYTES),
    }
    missing = [
        NewTopic(topic, num_partitions=PARTITIONS, replication_factor=1, config=settings)
        for topic in plan.topics
        if topic not in existing
    ]
    for topic, created in admin.create_topics(missing).items() if missing else ():
        try:
            created.result(_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise ComponentFailed(
                    f"Kafka did not create the topic {topic!r}: {error}",
                    "read Kafka's log",
                    component="kafka",
                ) from error


def end_offsets(kafka: str, topics: Iterable[str]) -> dict[str, dict[int, int]]:
    """By topic and partition the next record's offset; absent topics are left out."""
    consumer = _consumer(kafka)
    try:
        known = consumer.list_topics(timeout=_TIMEOUT_S).topics
        return {
            topic: {
                partition: consumer.get_watermark_offsets(
                    TopicPartition(topic, partition), timeout=_TIMEOUT_S
                )[1]
                for partition in known[topic].partitions
            }
            for topic in topics
            if topic in known
        }
    finally:
        consumer.close()


class MarkerReader:
    """Finds a marker of ours among the heartbeat table's events."""

    def __init__(self, kafka: str, plan: Plan) -> None:
        self._consumer = _consumer(kafka)
        topic = plan.heartbeat_rows_topic
        start = self._consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=_TIMEOUT_S)
        self._consumer.assign([TopicPartition(topic, 0, start[1])])

    def find(self, marker: str, timeout_s: float = 0.5) -> int | None:
        """The offset of the first unread event that carries the marker; None if none came."""
        for message in self._consumer.consume(500, timeout=timeout_s):
            value, offset = message.value(), message.offset()
            if message.error() is None and value is not None:
                after = json.loads(value).get("after") or {}
                if after.get("marker") == marker:
                    return offset
        return None

    def close(self) -> None:
        """Leave Kafka."""
        self._consumer.close()


def _admin(kafka: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka, "log_level": 0})


def _consumer(kafka: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": "cdclake-cli",  # offsets are never committed
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
            "log_level": 0,
        }
    )
