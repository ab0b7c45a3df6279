"""Identity and offsets of a Kafka topic, compared with what a table has read of it.

An offset means something only within one topic: a topic that was deleted and created again, or a
Kafka cluster that was replaced, starts at 0 again under the same names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdclake.jobs.control.table_progress import TableProgress


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    """A topic's id, and by partition its first retained and its end offset."""

    id: str
    first: Mapping[int, int]
    end: Mapping[int, int]

    def valid(self, offsets: Mapping[int, int]) -> dict[int, int]:
        """Select the offsets that the topic still reaches; the others are of lost records."""
        return {
            partition: offset
            for partition, offset in offsets.items()
            if offset <= self.end.get(partition, -1)
        }


@dataclass(frozen=True, slots=True)
class SnapshotTopic:
    """Topic at the end of an epoch's snapshot, and the first epoch known to be in the same one."""

    id: str
    since: int


def other_topic(topic: str, known: str, found: str) -> str | None:
    """Explain that the topic is not the one that was read before; None if it is, or may be.

    Progress and stamps of earlier versions know no id.
    """
    if not known or known == found:
        return None
    return f"the topic {topic} was deleted and created again: its id is {found}, it was {known}"


def lost_records(topic: str, place: TableProgress, state: TopicState) -> str | None:
    """Explain why the topic lacks records that the table has not read; None if it has them all."""
    replaced = other_topic(topic, place.topic_id, state.id)
    if replaced is not None:
        return replaced
    for partition, offset in sorted(place.offsets.items()):
        end = state.end.get(partition)
        if end is None or offset > end:
            return (
                f"the topic {topic} ends at offset {end or 0} of partition {partition}, before"
                f" offset {offset}, which the lake has reached: Kafka has lost records"
            )
    return expired_records(place.offsets, state.first)


def expired_records(offsets: Mapping[int, int], first: Mapping[int, int]) -> str | None:
    """Explain which records before these first ones were not read; None if there are none."""
    missing = [
        f"{offsets[partition]}-{low - 1} of partition {partition}"
        for partition, low in sorted(first.items())
        if offsets.get(partition, low) < low
    ]
    if not missing:
        return None
    return f"records {', '.join(missing)} expired from Kafka before they were read"
