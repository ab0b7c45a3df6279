"""Records of a topic with their bytes, for commands that show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition

from cdclake.errors import ComponentFailed
from cdclake.local.components.kafka import Broker

_TIMEOUT_S = 20.0


class TopicRecord(NamedTuple):
    """Record of a topic as Kafka has it."""

    partition: int
    offset: int
    written_ms: int
    key: bytes | None
    value: bytes | None


def retained(kafka: Broker, topic: str) -> dict[int, tuple[int, int]] | None:
    """Return the first retained offset and the end by partition; None if there is no such topic."""
    consumer = _consumer(kafka)
    try:
        found = consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
        if found.error is not None:
            return None
        places = {number: TopicPartition(topic, number) for number in found.partitions}
        return {
            number: consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)
            for number, place in places.items()
        }
    finally:
        consumer.close()


def topic_names(kafka: Broker) -> list[str]:
    """Return the names of all topics, except those that Kafka keeps for itself."""
    consumer = _consumer(kafka)
    try:
        return sorted(t for t in consumer.list_topics(timeout=_TIMEOUT_S).topics if t[:2] != "__")
    finally:
        consumer.close()


def read_records(
    kafka: Broker, topic: str, ranges: Mapping[int, tuple[int, int]]
) -> Iterator[TopicRecord]:
    """Yield the records of these ranges of offsets by partition; each range has an end.

    Offsets without a record, as in a compacted topic, are skipped.
    """
    for partition, (first, end) in sorted(ranges.items()):
        if first < end:
            yield from _read_partition(kafka, topic, partition, first, end)


def _read_partition(
    kafka: Broker, topic: str, partition: int, first: int, end: int
) -> Iterator[TopicRecord]:
    consumer = _consumer(kafka)
    try:
        consumer.assign([TopicPartition(topic, partition, first)])
        while True:
            record = consumer.poll(_TIMEOUT_S)
            if record is None:
                raise ComponentFailed(
                    f"Kafka did not return records of {topic!r} within {_TIMEOUT_S:.0f} s",
                    "read Kafka's log with `cdclake logs kafka`",
                    component="kafka",
                )
            error, offset = record.error(), record.offset()
            if error is not None and error.code() == KafkaError._PARTITION_EOF:
                return
            if error is not None or offset is None:
                continue
            if offset < end:
                written_ms = int(record.timestamp()[1])
                key, value = _raw(record.key()), _raw(record.value())
                yield TopicRecord(partition, offset, written_ms, key, value)
            if offset >= end - 1:
                return
    finally:
        consumer.close()


def _raw(value: bytes | str | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def _consumer(kafka: Broker) -> Consumer:
    """Create a consumer that commits no offsets, and that reports the end of a partition."""
    return Consumer(
        {
            **kafka.settings,
            "group.id": "cdclake-cli",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
        }
    )
