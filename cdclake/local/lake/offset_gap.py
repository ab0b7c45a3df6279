"""Offset gap of a stopped table: the records of its topic that it reads when it continues.

Kafka keeps them for a limited time. After that only the source still has the rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from cdclake.jobs.control.table_progress import TableProgress
from cdclake.local.components.kafka import Broker
from cdclake.local.lake.topics import TopicContents, read_topic


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Records that a stopped table has missed, and how long Kafka keeps them."""

    from_offsets: Mapping[int, int]  # by Kafka partition
    events: int  # still in Kafka, including tombstones of deletes
    lost_events: int  # deleted by Kafka
    kept_until: str | None  # Kafka deletes none before; None: no events, or no retention by time

    def to_json(self) -> dict[str, Any]:
        """Return the object that `status` shows."""
        return asdict(self)


def find_gap(kafka: Broker, topic: str, progress: TableProgress) -> Gap | None:
    """Return the gap of a stopped table; None if its topic does not exist."""
    contents = read_topic(kafka, topic, progress.offsets)
    return None if contents is None else measure_gap(contents, progress.offsets)


def measure_gap(contents: TopicContents, resume: Mapping[int, int]) -> Gap:
    """Compute the gap from these offsets; a partition without offset is read from the start."""
    starts = {p: resume.get(p, low) for p, (low, _) in contents.bounds.items()}
    waiting = {p: end - max(starts[p], low) for p, (low, end) in contents.bounds.items()}
    lost = {p: max(0, low - starts[p]) for p, (low, _) in contents.bounds.items()}
    oldest = [contents.written_ms[p] for p, count in waiting.items() if count > 0]
    kept_until = None
    if oldest and contents.retention_ms is not None:
        moment = datetime.fromtimestamp((min(oldest) + contents.retention_ms) // 1000, UTC)
        kept_until = moment.isoformat()
    return Gap(
        from_offsets=starts,
        events=sum(max(0, count) for count in waiting.values()),
        lost_events=sum(lost.values()),
        kept_until=kept_until,
    )
