"""Partitions and offsets of Kafka topics, read with the client that Spark ships.

No other client is needed: this one is present wherever `format("kafka")` is, and authenticates with
the same options.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

from pyspark.sql import SparkSession

from cdclake.jobs.jvm.java import java_with

_CLASSES = (
    "java.util.ArrayList",
    "java.util.HashMap",
    "org.apache.kafka.clients.admin.AdminClient",
    "org.apache.kafka.clients.admin.OffsetSpec",
    "org.apache.kafka.common.TopicPartition",
)
Offsets = dict[str, dict[int, int]]  # by topic and partition
End = Literal["earliest", "latest"]


def bounds(
    spark: SparkSession, brokers: Mapping[str, str], topic: str
) -> dict[int, tuple[int, int]]:
    """Return the first retained and the next offset of each partition of an existing topic."""
    with _admin(spark, brokers) as admin:
        listed = _partitions(spark, admin, [topic])
        first = _listed_offsets(spark, admin, listed, "earliest")[topic]
        end = _listed_offsets(spark, admin, listed, "latest")[topic]
    return {partition: (first[partition], end[partition]) for partition in listed[topic]}


def offsets(
    spark: SparkSession,
    brokers: Mapping[str, str],
    topics: Collection[str],
    at: End = "latest",
) -> Offsets:
    """Return the first retained or the next offset of each partition; skip missing topics."""
    with _admin(spark, brokers) as admin:
        existing = set(admin.listTopics().names().get())
        listed = _partitions(spark, admin, [topic for topic in topics if topic in existing])
        return _listed_offsets(spark, admin, listed, at)


def _listed_offsets(
    spark: SparkSession, admin: Any, listed: Mapping[str, Collection[int]], at: End
) -> Offsets:
    java = java_with(spark, *_CLASSES)
    wanted = java.HashMap()
    places = {}
    for topic, partitions in listed.items():
        for partition in partitions:
            place = places[topic, partition] = java.TopicPartition(topic, partition)
            wanted.put(place, getattr(java.OffsetSpec, at)())
    found = admin.listOffsets(wanted).all().get()
    return {
        topic: {partition: found.get(places[topic, partition]).offset() for partition in partitions}
        for topic, partitions in listed.items()
    }


class TopicIds:
    """Ids of the cluster's topics, with a client that stays open: a stream asks in every batch."""

    def __init__(self, spark: SparkSession, brokers: Mapping[str, str]) -> None:
        self._spark, self._brokers = spark, brokers
        self._client: Any = None
        self._listed = ""
        self._ids: dict[str, str] = {}

    def read(self, topics: Collection[str]) -> dict[str, str]:
        """Return the id that Kafka gave each topic when it was created; skip missing topics."""
        if self._client is None:
            self._client = _open_admin(self._spark, self._brokers)
        listing = self._client.listTopics().namesToListings().get()
        listed = str(listing)  # one call instead of three for each topic, which rarely change
        if listed != self._listed or not self._ids.keys() >= set(topics):
            found = {topic: listing.get(topic) for topic in topics}
            self._ids = {t: str(each.topicId()) for t, each in found.items() if each is not None}
            self._listed = listed
        return {topic: self._ids[topic] for topic in topics if topic in self._ids}


def _partitions(spark: SparkSession, admin: Any, topics: Collection[str]) -> dict[str, list[int]]:
    asked = java_with(spark, *_CLASSES).ArrayList()
    for topic in topics:
        asked.add(topic)
    described = admin.describeTopics(asked).allTopicNames().get()
    return {topic: [p.partition() for p in described.get(topic).partitions()] for topic in topics}


@contextmanager
def _admin(spark: SparkSession, brokers: Mapping[str, str]) -> Iterator[Any]:
    admin = _open_admin(spark, brokers)
    try:
        yield admin
    finally:
        admin.close()


def _open_admin(spark: SparkSession, brokers: Mapping[str, str]) -> Any:
    return java_with(spark, *_CLASSES).AdminClient.create(client_settings(spark, brokers))


def client_settings(spark: SparkSession, brokers: Mapping[str, str]) -> Any:
    """Return the settings of a Kafka client, as a Java map, from Spark's options for Kafka."""
    settings = java_with(spark, *_CLASSES).HashMap()
    for option, value in brokers.items():
        if option.startswith("kafka."):  # the others are options of Spark
            settings.put(option.removeprefix("kafka."), value)
    return settings
