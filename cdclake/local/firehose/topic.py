"""A stream's topic in Kafka, read by a consumer group of its own."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, TopicPartition

from cdclake.local.firehose.records import Record

log = logging.getLogger("cdclake.firehose")

_TIMEOUT_S = 20.0
_MOMENT_S = 0.2


class TopicSource:
    """The topic's records from the group's offsets on, at first from the earliest."""

    def __init__(self, kafka: str, group: str, topic: str) -> None:
        self._topic = topic
        self._consumer = Consumer(
            {
                "bootstrap.servers": kafka,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
                "log_level": 0,
            }
        )
        # One process reads all partitions: nobody to share them with, no rebalance to wait for.
        partitions = self._consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].partitions
        places = [TopicPartition(topic, partition) for partition in partitions]
        committed = self._consumer.committed(places, timeout=_TIMEOUT_S)
        for place in committed:
            self._say_what_is_missing(place)
        self._consumer.assign(committed)

    def _say_what_is_missing(self, place: TopicPartition) -> None:
        """Firehose goes on behind records that Kafka has deleted."""
        first, _ = self._consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)
        if 0 <= place.offset < first:
            log.error(
                "Kafka has deleted the records %d to %d of %s before they were delivered",
                *(place.offset, first - 1, self._topic),
            )

    def read(self, most: int) -> Sequence[Record]:
        """The next records, if any come within a moment.

        What librdkafka says of a broker that is away is no end: it comes back by itself.
        """
        found = []
        for message in self._consumer.consume(most, timeout=_MOMENT_S):
            error, partition, offset = message.error(), message.partition(), message.offset()
            if error is not None:
                log.warning("%s: %s", self._topic, error)
                continue
            assert partition is not None and offset is not None  # of a record without an error
            found.append(Record(partition, offset, int(message.timestamp()[1]), message.value()))
        return found

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Remember in Kafka that everything before these offsets is delivered."""
        places = [TopicPartition(self._topic, p, offset) for p, offset in offsets.items()]
        self._consumer.commit(offsets=places, asynchronous=False)
