"""Wait until the lake has caught up with everything that the source had written.

A marker is written to the source. Once the slot's reader has confirmed it, every earlier event is
in Kafka. Once the stream, or Firehose, has passed Kafka's end offsets of that time, every one of
them is in the lake.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from cdclake.activity import Advance, Step, step
from cdclake.errors import CdcError, ComponentFailed
from cdclake.jobs.control.progress import Progress
from cdclake.jobs.control.table_life import Held
from cdclake.jobs.control.table_progress import TableProgress
from cdclake.jobs.runtime.source import confirmed_lsn, write_marker
from cdclake.jobs.verify.not_arrived import NotArrived
from cdclake.plan import Plan, Table

Offsets = Mapping[str, Mapping[int, int]]  # by partition

_POLL_INTERVAL_S = 0.2
_MAX_NAMED = 2
_MARKER_INTERVAL_S = 0.5
_OBSTACLE_INTERVAL_S = 2.0
_MAX_OBSTACLE_S = 10.0  # the keeper restarts a dead component sooner
_MAX_FAILURES = 2  # of a table whose next try is waited for: half a minute, less than a job's start


class _ObstacleWatch:
    """Check for obstacles while something is awaited."""

    def __init__(self, find: Callable[[], CdcError | None], deadline: float) -> None:
        self._find, self._deadline = find, deadline
        self._next = self._since = 0.0

    def check(self) -> None:
        """Raise the obstacle if it has lasted, or at the deadline."""
        now = time.monotonic()
        if now < min(self._next, self._deadline):
            return
        self._next = now + _OBSTACLE_INTERVAL_S
        found = self._find()
        if found is None:
            self._since = 0.0
            return
        self._since = self._since or now
        if now > self._deadline or now - self._since > _MAX_OBSTACLE_S:
            raise found


@dataclass(frozen=True, kw_only=True)
class CatchUp:
    """Wait for the lake to catch up, with functions that read the offsets."""

    plan: Plan
    dsn: str
    ends: Callable[[Collection[str]], Offsets]  # current end offsets of topics
    progress: Callable[[], Progress]
    arrived: Callable[[Progress], Offsets]  # by table: every earlier event is in its changelog
    epoch: int = 0  # at least; the progress may not show a new one yet
    wait_s: float = 120.0
    obstacle: Callable[[], CdcError | None] = lambda: None  # the reason why nothing arrives
    run_stream: Callable[[], None] | None = None  # run a stream once that only a schedule starts
    # Reasons by late table: a further wait does not await these tables again.
    given_up: dict[str, NotArrived] = field(default_factory=dict)

    def wait(
        self, tables: Collection[Table], meanwhile: Callable[[], None]
    ) -> Mapping[str, NotArrived]:
        """Wait until everything written before the call is in the lake, except stopped tables.

        A table that is held back by a failure that may pass is waited for, for two tries, or for
        the run of a scheduled stream. Tables that Firehose delivers do not hold up the others: each
        has its own stream, or its domain's.

        Args:
            tables: the tables to wait for.
            meanwhile: called between two checks.

        Returns:
            The tables that cannot be compared, with the reason: they have stopped, or Firehose is
            behind with them after `wait_s`.

        Raises:
            ComponentFailed: if a table of the stream is behind after `wait_s`.
            CdcError: earlier, if an obstacle lasts.
        """
        with step("wait until the lake has caught up") as shown:
            return self._wait(tables, meanwhile, shown)

    def _wait(
        self, tables: Collection[Table], meanwhile: Callable[[], None], shown: Step
    ) -> Mapping[str, NotArrived]:
        deadline = time.monotonic() + self.wait_s
        watch = _ObstacleWatch(self.obstacle, deadline)
        shown.note(Advance(now="the connector reads the source's log"))
        self._await_kafka(deadline, watch, meanwhile)
        ends = self.ends([table.topic for table in tables])
        deadline += self._run_stream(tables, ends)
        while True:
            progress = self.progress()
            stopped = _stopped(progress, tables) | self._given_up_of(tables)
            waited = [table for table in tables if table.name not in stopped]
            behind = _behind(self.arrived(progress), waited, ends)
            behind += _replacing(progress, waited, max(self.epoch, progress.epoch))
            held = [] if self.run_stream else _held(progress, tables)
            is_late = time.monotonic() > deadline
            if not behind and (is_late or not held):
                return stopped
            texts = held + [text for _, text in behind]
            shown.note(Advance(now="; ".join(texts[:_MAX_NAMED])))
            if behind:
                watch.check()
            if is_late:
                return stopped | self._late(behind)
            meanwhile()
            time.sleep(_POLL_INTERVAL_S)

    def _run_stream(self, tables: Collection[Table], ends: Offsets) -> float:
        """Run a scheduled stream if records or held tables wait; return the seconds that it took.

        Only the next run tries a table again that the last one has held back.
        """
        if self.run_stream is None or self.obstacle() is not None:
            return 0.0
        progress = self.progress()
        streamed = [table for table in tables if table.delivery == "stream"]
        stopped = _stopped(progress, streamed)
        flowing = [table for table in streamed if table.name not in stopped]
        is_due = any(_is_tried(progress.tables[name]) for name in stopped)
        if not is_due and not _behind(self.arrived(progress), flowing, ends):
            return 0.0
        begun = time.monotonic()
        self.run_stream()
        return time.monotonic() - begun

    def _late(self, behind: list[tuple[Table, str]]) -> dict[str, NotArrived]:
        """Return the tables that Firehose is behind with, and the reason; raise it for others."""
        error = self._failure([table for table, _ in behind], [text for _, text in behind])
        if any(table.delivery != "firehose" for table, _ in behind):
            raise error
        late = {table.name: NotArrived(f"{text}; {error.remedy}") for table, text in behind}
        self.given_up.update(late)
        return late

    def _given_up_of(self, tables: Collection[Table]) -> dict[str, NotArrived]:
        return {t.name: self.given_up[t.name] for t in tables if t.name in self.given_up}

    def _failure(self, tables: list[Table], texts: list[str]) -> ComponentFailed:
        remedy = "see `cdclake status`; wait longer with --wait"
        if any(table.delivery == "firehose" for table in tables):
            remedy = (
                "a record that Firehose failed to deliver never arrives: look for failed records"
                " with `cdclake redrive --dry-run`, and process them with `cdclake redrive`;"
                " otherwise wait longer with --wait"
            )
        return ComponentFailed(
            f"the lake was behind the source after {self.wait_s:.0f} s: " + "; ".join(texts),
            remedy,
            component=tables[0].writer,
        )

    def _await_kafka(
        self, deadline: float, watch: _ObstacleWatch, meanwhile: Callable[[], None]
    ) -> None:
        slot = self.plan.source_object
        marker = write_marker(self.dsn)
        written = time.monotonic()
        while True:
            confirmed = confirmed_lsn(self.dsn, slot)
            if confirmed is not None and confirmed >= marker:
                return
            watch.check()
            now = time.monotonic()
            if now > deadline:
                lacking = "is gone" if confirmed is None else f"lacks {marker - confirmed} bytes"
                raise ComponentFailed(
                    f"Debezium was behind the source after {self.wait_s:.0f} s: "
                    f"the replication slot {slot} {lacking}",
                    "see `cdclake status`; wait longer with --wait",
                    component="connect",
                )
            if now - written > _MARKER_INTERVAL_S:
                # The slot confirms an event only when the second one after it arrives.
                write_marker(self.dsn)
                written = now
            meanwhile()
            time.sleep(_POLL_INTERVAL_S)


def _stopped(progress: Progress, tables: Collection[Table]) -> dict[str, NotArrived]:
    found = {table.name: progress.tables.get(table.name) for table in tables}
    return {
        name: NotArrived(place.last_error or "the stream has stopped the table", is_stopped=True)
        for name, place in found.items()
        if place is not None and not place.is_streaming
    }


def _held(progress: Progress, tables: Collection[Table]) -> list[str]:
    """Return a description of each table that the stream tries again soon."""
    found = {table.source: progress.tables.get(table.name) for table in tables}
    return [
        f"{source} is held back, and tried again"
        for source, place in found.items()
        if place is not None and _is_retried_soon(place)
    ]


def _is_retried_soon(place: TableProgress) -> bool:
    return isinstance(place.life, Held) and place.failures <= _MAX_FAILURES


def _is_tried(place: TableProgress) -> bool:
    """Return whether a run that starts now tries the table again, which does not stream."""
    return place.is_due(time.time()) or _is_retried_soon(place)


def _replacing(
    progress: Progress, tables: Collection[Table], epoch: int
) -> list[tuple[Table, str]]:
    """Return the tables that still have rows of the epoch before, with a description each."""
    text = f"the snapshot of epoch {epoch} is not complete, so rows of before are still shown"
    return [(t, f"{t.source}: {text}") for t in tables if progress.is_replacing(t, epoch)]


def _behind(arrived: Offsets, tables: Collection[Table], ends: Offsets) -> list[tuple[Table, str]]:
    """Return the tables that have not reached `ends` in their topics, with a description each."""
    behind = []
    for table in tables:
        offsets = arrived.get(table.name, {})
        lacking = sum(
            max(0, end - offsets.get(partition, 0))
            for partition, end in ends.get(table.topic, {}).items()
        )
        if table.topic not in ends:
            behind.append((table, f"{table.source}: Kafka has no topic {table.topic}"))
        elif lacking:
            text = f"{table.source}: {lacking} records of topic {table.topic} have not arrived"
            behind.append((table, text))
    return behind
