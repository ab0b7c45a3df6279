"""Kafka's records of a pipeline, whole; and the connector's word on a snapshot's end."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable

from confluent_kafka import Consumer, Message, TopicPartition

from cdclake.local.components.kafka import Broker
from cdclake.local.lake.topics import end_offsets
from tests.recorded.recording import Record

_WAIT_S = 60.0


def read_topics(kafka: Broker, topics: Iterable[str]) -> list[Record]:
    """Every record that the topics hold at this moment; AssertionError if some do not come."""
    ends = {
        (topic, partition): end
        for topic, partitions in end_offsets(kafka, topics).items()
        for partition, end in partitions.items()
        if end
    }
    consumer = Consumer({**kafka.settings, "group.id": "record"})
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in ends])
        records: list[Record] = []
        deadline = time.monotonic() + _WAIT_S
        while len(records) < sum(ends.values()):
            assert time.monotonic() < deadline, f"of {ends} came {len(records)} records"
            came = consumer.consume(1000, timeout=0.5)
            records += [_record(message) for message in came if message.error() is None]
        return records
    finally:
        consumer.close()


def snapshots_ended(kafka: Broker, topic: str) -> int:
    """How many snapshots the connector says that it has completed, of whatever kind."""
    said = [json.loads(record.value or b"{}") for record in read_topics(kafka, [topic])]
    return sum(notification.get("type") == "COMPLETED" for notification in said)


def _record(message: Message) -> Record:
    headers = tuple((str(name), _as_bytes(value)) for name, value in list(message.headers() or ()))
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None and partition is not None and offset is not None
    return Record(topic, partition, offset, message.key(), message.value(), headers)


def _as_bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value
