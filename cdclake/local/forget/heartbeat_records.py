"""Records of the heartbeat table's topic of a local lake."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cdclake.local.components.kafka import Broker
from cdclake.local.lake.topic_records import read_records, retained


@dataclass(frozen=True, slots=True)
class HeartbeatRecords:
    """Heartbeat topic as a command reads it."""

    kafka: Broker
    topic: str
    poll_interval_s: float = 0.3

    def ends(self) -> dict[int, int]:
        """Return the end offset of each partition."""
        return {p: end for p, (_, end) in (retained(self.kafka, self.topic) or {}).items()}

    def values_since(self, ends: dict[int, int]) -> Iterable[bytes]:
        """Yield the values of the records from these offsets on."""
        now = retained(self.kafka, self.topic) or {}
        ranges = {p: (max(low, ends.get(p, 0)), end) for p, (low, end) in now.items()}
        for record in read_records(self.kafka, self.topic, ranges):
            if record.value is not None:
                yield record.value
