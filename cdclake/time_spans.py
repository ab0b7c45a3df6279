"""Times that options take: relative to now as `-5m`, or ISO 8601."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_SPAN = re.compile(r"-?(\d{1,8})([smhdw])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def parse_span(text: str) -> timedelta | None:
    """Parse a span of time, with or without a minus; None if it is none.

    >>> parse_span("-5m")
    datetime.timedelta(seconds=300)
    """
    match = _SPAN.fullmatch(text.strip())
    return timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else None


def parse_time(text: str, now: datetime) -> datetime | None:
    """Parse a time relative to now, which needs the minus, or ISO 8601, in UTC without a zone.

    >>> str(parse_time("-1h", datetime(2026, 11, 26, 9, tzinfo=UTC)))
    '2026-11-26 08:00:00+00:00'
    """
    stripped = text.strip()
    if stripped.startswith("-"):
        span = parse_span(stripped)
        return None if span is None else _before(now, span)
    try:
        time = datetime.fromisoformat(stripped)
    except ValueError:
        return None
    return as_utc(time)


def as_utc(time: datetime) -> datetime:
    """Return the time with its zone; naive times are UTC."""
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _before(now: datetime, span: timedelta) -> datetime | None:
    try:
        return now - span
    except OverflowError:  # before the year 1
        return None
