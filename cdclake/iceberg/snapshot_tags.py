"""Tags of the snapshots that were current when an hour ended, as `at-2026-11-21T14:00:00Z`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

EVERY = timedelta(hours=1)
_FORM = "at-%Y-%m-%dT%H:%M:%SZ"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def hour_of(moment: datetime) -> datetime:
    """When the hour of the moment began."""
    return moment - (moment - _EPOCH) % EVERY


def tag_of(moment: datetime) -> str:
    """The tag of what was current at the moment, which is given in UTC."""
    return moment.strftime(_FORM)


def moment_of(tag: str) -> datetime | None:
    """The moment of a tag; None of one that somebody else has made."""
    try:
        return datetime.strptime(tag, _FORM).replace(tzinfo=UTC)
    except ValueError:
        return None
