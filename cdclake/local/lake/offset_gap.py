"""What a stopped table has missed: the part of its topic that it reads when it goes on.

Kafka keeps that for a time only. What it has deleted can be read from the source alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from cdclake.jobs.control.progress import TableProgress
from cdclake.local.lake.topics import TopicContents, read_topic


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """From where a stopped table goes on, and for how long it can."""

    from_offsets: Mapping[int, int]  # by Kafka partition
    events: int  # that Kafka keeps of it, tombstones of deletes included
    lost_events: int  # that Kafka has deleted
    kept_until: str | None  # no event goes before; None: nothing waits, or time does not decide

    def to_json(self) -> dict[str, Any]:
        """As `status` shows it."""
        return asdict(self)


def find_gap(kafka: str, topic: str, progress: TableProgress) -> Gap | None:
    """The gap of a stopped table; None if Kafka does not have its topic."""
    contents = read_topic(kafka, topic, progress.offsets)
    return None if contents is None else measure_gap(contents, progress.offsets)


def measure_gap(contents: TopicContents, resume: Mapping[int, int]) -> Gap:
    """The gap from these offsets on; a partition that has none is read from its beginning."""
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
