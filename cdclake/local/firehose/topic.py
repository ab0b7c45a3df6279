"""A stream's topic in Kafka, read by the stream's own consumer group."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, TopicPartition

from cdclake.local.components.kafka import Broker
from cdclake.local.firehose.records import Record

log = logging.getLogger("cdclake.firehose")

_TIMEOUT_S = 20.0
_POLL_TIMEOUT_S = 0.2


class TopicSource:
    """Source of the topic's records, from the group's offsets or else from the earliest."""

    def __init__(self, kafka: Broker, group: str, topic: str) -> None:
        self._topic = topic
        self._consumer = Consumer(
            {
                **kafka.settings,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
            }
        )
        # One process reads all partitions, so no rebalance is needed.
        partitions = self._consumer.list_topics(topic, timeout=_TIMEOUT_S).topics[topic].partitions
        places = [TopicPartition(topic, partition) for partition in partitions]
        committed = self._consumer.committed(places, timeout=_TIMEOUT_S)
        for place in committed:
            self._log_expired(place)
        self._consumer.assign(committed)

    def _log_expired(self, place: TopicPartition) -> None:
        """Log records that expired from Kafka before delivery; Firehose skips them."""
        first, _ = self._consumer.get_watermark_offsets(place, timeout=_TIMEOUT_S)
        if 0 <= place.offset < first:
            log.error(
                "records %d-%d of %s expired from Kafka before they were delivered",
                *(place.offset, first - 1, self._topic),
            )

    def read(self, most: int) -> Sequence[Record]:
        """Return the next records, if any arrive within a fraction of a second.

        Errors about an unreachable broker are only logged: librdkafka reconnects by itself.
        """
        found = []
        for message in self._consumer.consume(most, timeout=_POLL_TIMEOUT_S):
            error, partition, offset = message.error(), message.partition(), message.offset()
            if error is not None:
                log.warning("%s: %s", self._topic, error)
                continue
            assert partition is not None and offset is not None  # set unless there is an error
            found.append(Record(partition, offset, int(message.timestamp()[1]), message.value()))
        return found

    def commit(self, offsets: Mapping[int, int], dropped: int = 0) -> None:
        """Commit these offsets to Kafka: all records before them are delivered."""
        del dropped  # offsets show what has arrived
        places = [TopicPartition(self._topic, p, offset) for p, offset in offsets.items()]
        self._consumer.commit(offsets=places, asynchronous=False)
