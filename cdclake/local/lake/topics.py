"""The pipeline's Kafka topics: creation, offsets, contents, and markers."""

from __future__ import annotations

import base64
import json
import struct
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]
from confluent_kafka.cimpl import NewTopic

from cdclake.debezium.topics import PARTITIONS, TOPIC_SETTINGS
from cdclake.errors import ComponentFailed
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.topic_state import TopicState
from cdclake.local.components.kafka import Broker
from cdclake.plan import Plan

_TIMEOUT_S = 20.0


def create_topics(kafka: Broker, plan: Plan) -> None:
    """Create the plan's missing topics; Kafka creates none automatically."""
    admin = _admin(kafka)
    existing = set(admin.list_topics(timeout=_TIMEOUT_S).topics)
    missing = [
        NewTopic(topic, num_partitions=PARTITIONS, replication_factor=1, config=TOPIC_SETTINGS)
        for topic in (*plan.topics, *plan.control_topics.values())
        if topic not in existing
    ]
    for topic, created in admin.create_topics(missing).items() if missing else ():
        try:
            created.result(_TIMEOUT_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise ComponentFailed(
                    f"Kafka could not create the topic {topic!r}: {error}",
                    "read Kafka's log",
                    component="kafka",
                ) from error


def end_offsets(kafka: Broker, topics: Iterable[str]) -> dict[str, dict[int, int]]:
    """Return the end offsets by topic and partition; missing topics are left out."""
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


def topic_id(kafka: Broker, topic: str) -> str:
    """Return the id that Kafka gave the topic when it was created; "" if it is missing."""
    admin = _admin(kafka)
    if topic not in admin.list_topics(timeout=_TIMEOUT_S).topics:
        return ""
    described = admin.describe_topics(TopicCollection([topic]))[topic].result(_TIMEOUT_S)
    bits = described.topic_id
    halves = bits.get_most_significant_bits(), bits.get_least_significant_bits()
    # As Kafka's Java client writes it, which the stream uses.
    return base64.urlsafe_b64encode(struct.pack(">qq", *halves)).decode().rstrip("=")


def topic_state(kafka: Broker, topic: str) -> TopicState | None:
    """Return the topic's id and offsets; None if it is missing."""
    found, contents = topic_id(kafka, topic), read_topic(kafka, topic, {})
    if not found or contents is None:
        return None
    first = {partition: low for partition, (low, _) in contents.bounds.items()}
    end = {partition: end for partition, (_, end) in contents.bounds.items()}
    return TopicState(id=found, first=first, end=end)


def group_offsets(kafka: Broker, group: str, topic: str) -> dict[int, int]:
    """Return the group's committed offsets by partition; partitions without one are left out."""
    consumer = _consumer(kafka, group)
    try:
        partitions = consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].partitions
        places = [TopicPartition(topic, partition) for partition in partitions]
        committed = consumer.committed(places, timeout=_TIMEOUT_S)
        return {place.partition: place.offset for place in committed if place.offset >= 0}
    finally:
        consumer.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicContents:
    """Retained records of a topic, by partition."""

    bounds: Mapping[int, tuple[int, int]]  # first retained offset, and end offset
    written_ms: Mapping[int, int]  # write time of the first requested record
    retention_ms: int | None  # None: retention by size, or unlimited


def read_topic(kafka: Broker, topic: str, start: Mapping[int, int]) -> TopicContents | None:
    """Return the topic's retained records, with the age of those from `start`; None if missing."""
    consumer = _consumer(kafka)
    try:
        known = consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic]
        if known.error is not None:
            return None
        places = {p: TopicPartition(topic, p) for p in known.partitions}
        bounds = {
            p: consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)
            for p, place in places.items()
        }
        written = {}
        for partition, (low, end) in bounds.items():
            first = max(low, start.get(partition, low))
            if first < end:
                written[partition] = _written_ms(consumer, topic, partition, first)
    finally:
        consumer.close()
    return TopicContents(
        bounds=bounds, written_ms=written, retention_ms=_retention_ms(_admin(kafka), topic)
    )


def _written_ms(consumer: Consumer, topic: str, partition: int, offset: int) -> int:
    consumer.assign([TopicPartition(topic, partition, offset)])
    message = consumer.poll(_TIMEOUT_S)
    if message is None or message.error() is not None:
        raise ComponentFailed(
            f"Kafka did not return record {offset} of {topic!r}", "read Kafka's log", "kafka"
        )
    return int(message.timestamp()[1])


def _retention_ms(admin: AdminClient, topic: str) -> int | None:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    [answer] = admin.describe_configs([resource]).values()
    settings = answer.result(_TIMEOUT_S)
    by_time, by_size = (int(settings[f"retention.{unit}"].value) for unit in ("ms", "bytes"))
    return by_time if by_time >= 0 and by_size < 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """Place of a heartbeat's event in its topic, and the commit time of its transaction."""

    offset: int
    committed_us: int

    def has_passed(self, progress: Progress) -> bool:
        """Return True if the stream has read it, and not one before it in an earlier topic."""
        is_read = progress.heartbeat_offsets.get(0, 0) > self.offset
        return is_read and progress.heartbeat_committed_us >= self.committed_us


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """Record of a topic whose values are JSON objects."""

    offset: int
    written_ms: int
    value: Mapping[str, Any]


def read_messages(kafka: Broker, topic: str, start: int) -> tuple[int, list[Message]]:
    """Return the first retained offset of partition 0, and its records from `start` on."""
    consumer, found = _consumer(kafka), []
    try:
        low, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=_TIMEOUT_S)
        consumer.assign([TopicPartition(topic, 0, max(low, start))])
        deadline = time.monotonic() + _TIMEOUT_S
        place = max(low, start)
        while place < end and time.monotonic() < deadline:
            # No more than there are: `consume` would wait for them.
            for record in consumer.consume(min(500, end - place), timeout=0.5):
                value, place = record.value(), int(record.offset() or 0) + 1
                if record.error() is None and value is not None:
                    read = json.loads(value)
                    written = int(record.timestamp()[1])
                    found.append(Message(offset=place - 1, written_ms=written, value=read))
        return int(low), found
    finally:
        consumer.close()


def offsets_at(kafka: Broker, times_ms: Mapping[str, int]) -> dict[str, dict[int, int]]:
    """Return the offset of the first record written at each topic's time or later, by partition."""
    consumer = _consumer(kafka)
    try:
        known = consumer.list_topics(timeout=_TIMEOUT_S).topics
        asked = [
            TopicPartition(topic, partition, at)
            for topic, at in times_ms.items()
            for partition in known[topic].partitions
        ]
        found: dict[str, dict[int, int]] = {topic: {} for topic in times_ms}
        for place in consumer.offsets_for_times(asked, timeout=_TIMEOUT_S):
            offset = place.offset
            if offset < 0:  # no later record
                offset = consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)[1]
            found[place.topic][place.partition] = offset
        return found
    finally:
        consumer.close()


class MarkerReader:
    """Reader that finds a marker among the heartbeat table's events."""

    def __init__(self, kafka: Broker, plan: Plan) -> None:
        self._consumer = _consumer(kafka)
        topic = plan.heartbeat_rows_topic
        start = self._consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=_TIMEOUT_S)
        self._consumer.assign([TopicPartition(topic, 0, start[1])])

    def find(self, marker: str, timeout_s: float = 0.5) -> Heartbeat | None:
        """Return the first unread event with the marker; None if there is none."""
        for message in self._consumer.consume(500, timeout=timeout_s):
            value, offset = message.value(), message.offset()
            if message.error() is None and value is not None and offset is not None:
                event = json.loads(value)
                if (event.get("after") or {}).get("marker") == marker:
                    return Heartbeat(offset=offset, committed_us=event["source"]["ts_us"])
        return None

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()


def _admin(kafka: Broker) -> AdminClient:
    return AdminClient(kafka.settings)


def _consumer(kafka: Broker, group: str = "cdclake-cli") -> Consumer:
    """Create a consumer that never commits offsets; its group's offsets are at most read."""
    return Consumer(
        {
            **kafka.settings,
            "group.id": group,
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
        }
    )
