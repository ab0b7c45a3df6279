"""Facts about one row, as the parts of a lake recorded them.

They contain no connection and no query, so that `explanation` is a pure function of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cdclake.debezium.position import POLL_PHASE, SNAPSHOT_PHASE, Position, history_part
from cdclake.plan import Table

Row = Mapping[str, Any]
MAX_EVENTS = 1000  # of one row that are traced, newest first


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedEvent:
    """One event of the row, with its time in each part of the lake."""

    op: str | None = None
    position: str | None = None
    tx_id: int | None = None
    committed_us: int | None = None
    topic: str | None = None
    partition: int | None = None
    offset: int | None = None
    kafka_ms: int | None = None  # None: Kafka has no such record, or it has expired
    ingested_us: int | None = None  # None: not in the changelog
    shown_ms: int | None = None  # commit of the changelog; None also if its snapshot has expired
    applied_ms: int | None = None  # commit of the state; None also if its snapshot has expired
    quarantined_us: int | None = None
    reason: str | None = None  # why it is in quarantine
    values: Row | None = None  # of the row, as the changelog has them
    unsent: tuple[str, ...] = ()
    other_key: str | None = None  # the event is half of a changed key
    copies: int = 0  # further records of the same event, which the lake has dropped

    @property
    def is_stored(self) -> bool:
        """Check whether the changelog has the event."""
        return self.ingested_us is not None

    @property
    def is_synthetic(self) -> bool:
        """Check whether cdclake has written the event itself, so that Kafka never had it."""
        return self.partition is not None and self.partition < 0

    @property
    def is_sweep(self) -> bool:
        """Check whether it is a new epoch's truncate, and no statement of the source."""
        return self.op == "t" and self.is_synthetic

    @property
    def place(self) -> Position | None:
        """Return the parsed position."""
        return None if self.position is None else Position.parse(self.position)

    @property
    def is_snapshot(self) -> bool:
        """Check whether the connector, or a bulk load, has read the row."""
        return self.place is not None and self.place.phase == SNAPSHOT_PHASE

    @property
    def is_polled(self) -> bool:
        """Check whether a poll has found the row; a delete at such a position says it is gone."""
        return self.op == "r" and self.place is not None and self.place.phase == POLL_PHASE

    @property
    def identity(self) -> tuple[Any, ...]:
        """Return what copies of one event have in common."""
        if self.position is None:
            return self.topic, self.partition, self.offset
        return history_part(self.position), self.op


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """The row and its table in the source."""

    has_row: bool | None = None  # None: the source did not answer
    is_published: bool | None = None
    row_filter: str | None = None  # of the publication, if it hides the row


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFacts:
    """The row in the state table."""

    position: str
    deleted: bool
    missing: tuple[str, ...] = ()  # columns whose value the lake never received


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowFacts:
    """Current state of the table's way through the lake."""

    is_paused: bool = False
    is_stopped: bool = False
    last_error: str | None = None
    is_loading: bool = False  # the first load, or that of a new epoch, has not finished
    is_resyncing: bool = False
    polled: bool | None = None  # of a polled table: whether a poll has run
    writer_runs: bool = True
    kafka_answers: bool = True
    connector_error: str | None = None
    arrived: Mapping[int, int] = field(default_factory=dict)  # next offset to read, by partition
    # By partition the first retained offset, the first one that was searched, and the end.
    searched: Mapping[int, tuple[int, int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceFacts:
    """Everything that is known about one row."""

    table: Table
    key: tuple[str, ...]
    source: SourceFacts
    flow: FlowFacts
    events: tuple[TracedEvent, ...] = ()  # of the key, in the order of positions
    has_earlier: bool = False  # there are older events than the first of these
    truncates: tuple[TracedEvent, ...] = ()  # of the table, after the row's first event, in order
    applied_through_us: int = 0  # the state has every change ingested up to then
    state: StateFacts | None = None
    state_row: Row | None = None  # of `<t>`, with tombstones and soft deletes
    current_row: Row | None = None  # of `<t>_current`
    is_deployed: bool = False  # only the lake is asked: a deployment's source and Kafka are private
    erased_at: str = ""  # position before which its events are refused; "": it was not erased

    @property
    def stored(self) -> tuple[TracedEvent, ...]:
        """Return the events that the changelog has."""
        return tuple(event for event in self.events if event.is_stored)

    @property
    def newest(self) -> TracedEvent | None:
        """Return the newest event that the changelog has."""
        return self.stored[-1] if self.stored else None

    @property
    def is_applied(self) -> bool:
        """Check whether the state has the newest event; a purged tombstone has no row there."""
        newest = self.newest
        if newest is None or (newest.ingested_us or 0) <= self.applied_through_us:
            return True
        return self.state is not None and self.state.position >= (newest.position or "")

    @property
    def quarantined(self) -> tuple[TracedEvent, ...]:
        """Return the events that are in quarantine and not in the changelog."""
        return tuple(e for e in self.events if not e.is_stored and e.reason is not None)

    def is_newer(self, event: TracedEvent) -> bool:
        """Check whether an event without a place in the changelog follows the newest one there."""
        newest = self.newest
        if newest is None:
            return True
        if event.position is not None:
            return event.position > (newest.position or "")
        return (event.quarantined_us or 0) > (newest.ingested_us or 0)

    @property
    def waiting(self) -> tuple[TracedEvent, ...]:
        """Return the events that are in Kafka, and that the lake has not processed."""
        return tuple(
            e
            for e in self.events
            if not e.is_stored
            and e.reason is None
            and e.partition is not None
            and e.offset is not None
            and e.offset >= self.flow.arrived.get(e.partition, 0)
        )

    @property
    def passed(self) -> tuple[TracedEvent, ...]:
        """Return the newer events in Kafka that the lake has processed, and has nowhere."""
        waiting = self.waiting
        return tuple(
            e
            for e in self.events
            if not e.is_stored and e.reason is None and e not in waiting and self.is_newer(e)
            if not self._is_erased(e)
        )

    def _is_erased(self, event: TracedEvent) -> bool:
        return event.position is not None and event.position < self.erased_at

    @property
    def truncated_by(self) -> TracedEvent | None:
        """Return the newest truncate, if it is after every event of the row."""
        last = self.truncates[-1] if self.truncates else None
        if last is None or self.newest is None:
            return None
        return last if (last.position or "") > (self.newest.position or "") else None
