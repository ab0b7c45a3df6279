"""Renewal of the stored views of the states that the stream updates, between batches."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from cdclake.jobs.apply.view_renewal import (
    RENEW_EVERY,
    SETTLED_AFTER,
    ViewRenewal,
    has_stored_bound,
)
from cdclake.jobs.stream.table_stream import TableStream

# Each waits for some requests, and a batch runs this many at once.
MAX_PER_BATCH = 16


class InlineViewRenewal:
    """Scheduler of renewals: each table whose state was updated, once in ten minutes."""

    def __init__(self, renewal: ViewRenewal) -> None:
        self._renewal = renewal

    def note(self, stream: TableStream) -> None:
        """Note that the table's state has a new commit."""
        stream.schedule.state_updated_at = datetime.now(UTC)

    def chosen(self, streams: Iterable[TableStream]) -> list[TableStream]:
        """Choose the tables that have waited longest, as many as a batch may renew."""
        now = datetime.now(UTC)
        due = [stream for stream in streams if _is_due(stream, now)]
        return sorted(due, key=lambda stream: stream.schedule.view_checked_at)[:MAX_PER_BATCH]

    def renew(self, stream: TableStream) -> None:
        """Renew the table's view, unless its tail is still short."""
        now = datetime.now(UTC)
        stream.schedule.view_checked_at = now
        self._renewal.renew(stream.lake, stream.plan, stream.table, now)


def _is_due(stream: TableStream, now: datetime) -> bool:
    """Check whether the state has a commit that the last check could not use yet."""
    schedule = stream.schedule
    has_news = schedule.view_checked_at < schedule.state_updated_at + SETTLED_AFTER
    return (
        has_stored_bound(stream.plan) and has_news and now - schedule.view_checked_at >= RENEW_EVERY
    )
