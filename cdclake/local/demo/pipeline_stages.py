"""Progress of each table through the pipeline's stages: source, Kafka, stream, lake."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from cdclake.jobs.control.progress import Progress
from cdclake.local.demo.writer import Writer
from cdclake.local.lake.delivered_offsets import arrived_offsets
from cdclake.local.lake.lake import LocalLake
from cdclake.local.lake.topics import end_offsets

_WATCHED_S = 5.0  # longest time between looks: after more, several batches may have arrived


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """One table's progress; `in_kafka` and `in_lake` are offsets of its topic."""

    table: str
    written: int  # rows changed by the shop since it opened
    in_kafka: int
    in_lake: int

    @property
    def lag(self) -> int:
        """Number of records in Kafka that are not in the lake yet."""
        return max(0, self.in_kafka - self.in_lake)


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """Progress of all tables at one point in time, and the newest batch."""

    hops: tuple[Hop, ...]
    written: int
    transactions: int
    rate: float  # rows changed per second since the previous look
    lag: int
    batch: int
    batch_events: int
    batch_seconds: float
    freshness_s: float | None  # median age of the newest arrived transactions, on arrival
    slowest_s: float | None  # greatest age among them


class Hops:
    """Repeated looks at the pipeline, each compared with the previous one."""

    def __init__(self, lake: LocalLake, writer: Writer) -> None:
        self._lake, self._writer = lake, writer
        self._control = lake.control
        self._offsets: Mapping[str, int] = {}
        self._ages: list[float] = []
        self._before = (time.monotonic(), 0)

    def look(self) -> Look:
        """Return the current progress."""
        progress = Progress.load(self._control)
        ends = end_offsets(self._lake.kafka, [table.topic for table in self._lake.plan.tables])
        now = _offsets(arrived_offsets(self._lake.kafka, self._lake.plan, progress))
        if now != self._offsets:
            self._take(progress, now)
        written = self._writer.written
        hops = tuple(
            Hop(
                table=table.name,
                written=written.rows[table.table],
                in_kafka=sum(ends.get(table.topic, {}).values()),
                in_lake=self._offsets.get(table.name, 0),
            )
            for table in self._lake.plan.tables
        )
        return Look(
            hops=hops,
            written=written.total,
            transactions=written.transactions,
            rate=self._rate(written.total),
            lag=sum(hop.lag for hop in hops),
            batch=progress.batch,
            batch_events=progress.events,
            batch_seconds=progress.seconds,
            freshness_s=median(self._ages) if self._ages else None,
            slowest_s=max(self._ages, default=None),
        )

    def _take(self, progress: Progress, now: Mapping[str, int]) -> None:
        """Compute the ages of the transactions that arrived since the previous look.

        Skip them if the previous look is too long ago to know when they arrived.
        """
        if time.monotonic() - self._before[0] > _WATCHED_S:
            self._offsets = now
            return
        is_streamed = not self._lake.plan.deliveries
        written = datetime.fromisoformat(progress.written_at).timestamp()
        done = written if is_streamed else time.time()
        ages = [
            age
            for table in self._lake.plan.tables
            for age in self._writer.ledgers[table.table].ages(
                self._offsets.get(table.name, 0), now.get(table.name, 0), done
            )
        ]
        self._ages = ages or self._ages
        self._offsets = now

    def _rate(self, total: int) -> float:
        at, before = self._before
        now = time.monotonic()
        self._before = (now, total)
        return (total - before) / max(now - at, 0.001)


def _offsets(arrived: Mapping[str, Mapping[int, int]]) -> Mapping[str, int]:
    return {name: sum(offsets.values()) for name, offsets in arrived.items()}
