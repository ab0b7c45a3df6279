"""Tags of the snapshots that were current when an hour ended, as `at-2026-11-21T14:00:00Z`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EVERY = timedelta(hours=1)
_FORM = "at-%Y-%m-%dT%H:%M:%SZ"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def hour_of(moment: datetime) -> datetime:
    """Return the start of the timestamp's hour."""
    return moment - (moment - _EPOCH) % EVERY


def tag_of(moment: datetime) -> str:
    """Return the tag of the snapshot that was current at the timestamp (UTC)."""
    return moment.strftime(_FORM)


def moment_of(tag: str) -> datetime | None:
    """Return the timestamp of a tag; None if the tag was not created by cdclake."""
    try:
        return datetime.strptime(tag, _FORM).replace(tzinfo=UTC)
    except ValueError:
        return None
