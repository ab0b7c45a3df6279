"""Check of each batch that the tables' topics are still the ones that were read before.

Spark compares offsets alone: it reads on in the middle of a topic that was created again and has
grown past the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from pyspark.sql import SparkSession

from cdclake.errors import TableError
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.control.topic_state import TopicState, lost_records, other_topic
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.runtime.kafka import TopicIds, offsets
from cdclake.plan import Plan, Table
from cdclake.postgres.source_names import rereading_remedy


class Topics(Protocol):
    """Kafka's topics."""

    def ids(self, topics: Sequence[str]) -> Mapping[str, str]:
        """Return the id of each topic that exists."""

    def states(self, topics: Sequence[str]) -> Mapping[str, TopicState]:
        """Return id and offsets of each topic that exists."""


class KafkaTopics:
    """Topics of a running cluster."""

    def __init__(self, spark: SparkSession, brokers: Mapping[str, str]) -> None:
        self._spark, self._brokers = spark, brokers
        self._ids = TopicIds(spark, brokers)

    def ids(self, topics: Sequence[str]) -> Mapping[str, str]:
        """Ask the cluster."""
        return self._ids.read(topics)

    def states(self, topics: Sequence[str]) -> Mapping[str, TopicState]:
        """Ask the cluster."""
        ids = self.ids(topics)
        first = offsets(self._spark, self._brokers, ids, "earliest")
        end = offsets(self._spark, self._brokers, ids)
        return {
            topic: TopicState(id=ids[topic], first=first[topic], end=end[topic])
            for topic in first.keys() & end.keys()
        }


class NoTopics:
    """Topics of records that do not come from Kafka: nothing is compared."""

    def ids(self, topics: Sequence[str]) -> Mapping[str, str]:
        """Return no id."""
        del topics
        return {}

    def states(self, topics: Sequence[str]) -> Mapping[str, TopicState]:
        """Return no state."""
        del topics
        return {}


class TopicCheck:
    """Comparison of the topics with the progress; it finds the tables that must not go on."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._compared_offsets = False
        self._rejoining: frozenset[str] = frozenset()

    def note_rejoining(self, plan: Plan, progress: Progress, lake: LakeTables) -> None:
        """Note the tables that the progress does not know although they have a changelog.

        The query has passed the records that their topics hold already; a resync reads the rows.
        """
        places = {table: progress.table(table.name) for table in plan.tables}
        self._rejoining = frozenset(
            table.name
            for table, place in places.items()
            if table.delivery == "stream"
            and not (place.topic_id or place.offsets)
            and lake.exists(table.changes)  # else it could not be created, and is held back
            and lake.stamped(table.changes).stamp is not None
        )

    def problems(self, plan: Plan, progress: Progress) -> Iterator[tuple[Table, TableError]]:
        """Yield each flowing table whose topic lacks records that it has not read.

        The ids are compared in every batch; the offsets in the first one, since Spark fails when
        they go backwards while it runs. Remembers the ids of topics that are new.
        """
        tables = [table for table in plan.tables if table.delivery == "stream"]
        topics = [table.topic for table in tables]
        ids = self._topics.ids(topics)
        places = {table.name: progress.table(table.name) for table in tables}
        has_new = any(not places[t.name].topic_id for t in tables if t.topic in ids)
        states: Mapping[str, TopicState] = {}
        if has_new or not self._compared_offsets:
            states = self._topics.states(topics)
        compares_offsets, self._compared_offsets = not self._compared_offsets, True
        for table in tables:
            if table.topic not in ids:
                continue  # Spark fails the query
            place = places[table.name]
            if not place.is_streaming:
                continue
            state = states.get(table.topic)
            reason = other_topic(table.topic, place.topic_id, ids[table.topic])
            if reason is None and compares_offsets and state is not None:
                reason = lost_records(table.topic, place, state)
            if reason is not None:
                yield table, needs_resync(table, reason)
            elif not place.topic_id and state is not None:
                _remember(place, state, rejoins=table.name in self._rejoining)

    def check_gap(self, table: Table, place: TableProgress) -> None:
        """Raise TableError if Kafka lacks records of the gap, unless the table gives it up."""
        state = None if place.skips_gap else self.state(table)
        reason = None if state is None else lost_records(table.topic, place, state)
        if reason is not None:
            raise needs_resync(table, reason)

    def state(self, table: Table) -> TopicState | None:
        """Return the table's topic as it is now; None if it does not exist."""
        return self._topics.states([table.topic]).get(table.topic)


def accept_topic(place: TableProgress, topic: TopicState) -> None:
    """Let the table go on in this topic, from Kafka's first records where others are lost."""
    is_same = place.topic_id in ("", topic.id)
    reached = topic.valid(place.offsets) if is_same else {}
    place.offsets = {p: max(low, reached.get(p, low)) for p, low in topic.first.items()}
    place.counted = place.counted if is_same else {}
    place.topic_id = topic.id


def _remember(place: TableProgress, state: TopicState, *, rejoins: bool) -> None:
    """Note the topic's id, and its first offsets: what expires before it is read is then missed."""
    place.topic_id = state.id
    for partition, first in () if rejoins else state.first.items():
        place.offsets.setdefault(partition, first)


def needs_resync(table: Table, reason: str) -> TableError:
    """Return the error of a table that lost records before it read them."""
    return TableError(table.name, reason, rereading_remedy(table))
