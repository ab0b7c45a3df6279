"""Times of a table's scheduled work, in memory: they are lost when the stream restarts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(slots=True)
class TableSchedule:
    """Record of a table's scheduled work."""

    # Set by ApplyScheduler: since when the state is or may be behind (seconds since 1970).
    behind_since: float | None = None
    # Set by InlineCompaction: commits to the state since its last compaction.
    state_commits: int = 0
    # Set by InlineExpiration: hour of the last expiration of snapshots.
    expired_in: datetime = NEVER
    # Set by StampRenewal: when the stamps were last looked at.
    stamps_checked_at: datetime = NEVER
    # Set by InlineViewRenewal: when the state was last updated, and the view last looked at.
    state_updated_at: datetime = NEVER
    view_checked_at: datetime = NEVER
