"""Schedules in EventBridge's syntax: `rate(5 minutes)` and `cron(0 3 * * ? *)`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator

from cdclake.config.problems import Refused
from cdclake.schedule_times import MONTHS, WEEKDAYS, cron_minutes, next_start, rate_minutes

_DAY = "|".join(["[1-7]", *WEEKDAYS])
# What only days have: the last, the working day nearest to the 15th, the third Monday.
_DAY_WORDS = {
    "day of month": "L|LW|([1-9]|[12][0-9]|3[01])W",
    "day of week": f"L|({_DAY})(L|#[1-5])",
}
# name, minimum, maximum, names of the numbers from the minimum on
_FIELDS: tuple[tuple[str, int, int, list[str]], ...] = (
    ("minutes", 0, 59, []),
    ("hours", 0, 23, []),
    ("day of month", 1, 31, []),
    ("month", 1, 12, MONTHS),
    ("day of week", 1, 7, WEEKDAYS),
    ("year", 1970, 2199, []),
)
_EARLIEST_START = datetime(2026, 1, 1, tzinfo=UTC)  # fixed, so a valid file stays valid
_EXAMPLES = "write it like `rate(5 minutes)` or `cron(0 3 * * ? *)`"


def parse_schedule(spelling: str) -> str:
    """Return the schedule; raise `Refused` if EventBridge would refuse it, or never start it."""
    text = spelling.strip()
    match = re.fullmatch(r"(\w+)\((.*)\)", text)
    kind = match[1] if match else ""
    if match and kind == "rate":
        _check_rate(text, match[2])
    elif match and kind == "cron":
        _check_cron(match[2])
        if next_start(text, _EARLIEST_START) is None:
            raise Refused(
                f"the schedule {text!r} never starts",
                "write days that its months have, and `*` as the year",
            )
    elif kind == "at":
        raise Refused("a schedule with `at(...)` runs only once", _EXAMPLES)
    else:
        raise Refused(f"invalid schedule {spelling!r}", _EXAMPLES)
    return text


def shortest_minutes(spelling: str) -> int | None:
    """Return the shortest time between two runs in minutes; None if the schedule is not valid.

    For a cron schedule only the minutes matter: hours and days cannot bring two runs closer.

    >>> shortest_minutes("rate(2 hours)"), shortest_minutes("cron(0/5 8-17 ? * MON-FRI *)")
    (120, 5)
    """
    try:
        text = parse_schedule(spelling)
    except Refused:
        return None
    rate = rate_minutes(text)
    if rate is not None:
        return rate
    minutes = cron_minutes(text)
    after = [*minutes[1:], minutes[0] + 60]
    return min(later - earlier for earlier, later in zip(minutes, after, strict=True))


def _check_rate(text: str, inside: str) -> None:
    match = re.fullmatch(r"([1-9][0-9]{0,5}) (minute|hour|day)(s?)", inside)
    if match is None:
        raise Refused(f"invalid rate {text!r}", "write it like `rate(5 minutes)` or `rate(1 hour)`")
    plural = "s" if match[1] != "1" else ""
    if match[3] != plural:
        raise Refused(
            f"EventBridge refuses {text!r}", f"write `rate({match[1]} {match[2]}{plural})`"
        )


def _check_cron(inside: str) -> None:
    parts = inside.split()
    if len(parts) != len(_FIELDS):
        raise Refused(
            f"a cron schedule needs 6 fields, this one has {len(parts)}",
            "write minutes, hours, day of month, month, day of week, year: `cron(0 3 * * ? *)`",
        )
    if (parts[2] == "?") == (parts[4] == "?"):
        raise Refused(
            "exactly one of a cron schedule's day of month and day of week must be `?`",
            "write `?` for one of the two: `cron(0 3 * * ? *)`",
        )
    for part, (name, least, greatest, words) in zip(parts, _FIELDS, strict=True):
        if part == "?" and name in _DAY_WORDS:
            continue
        for item in part.split(","):
            if not (_fits(item, least, greatest, words) or _is_day_word(item, name)):
                raise Refused(
                    f"invalid {name} {part!r} in a cron schedule",
                    f"write `*`, or numbers from {least} to {greatest}: n, n-m, n/step, n,m",
                )


def _is_day_word(item: str, name: str) -> bool:
    return name in _DAY_WORDS and re.fullmatch(_DAY_WORDS[name], item.upper()) is not None


def _fits(item: str, least: int, greatest: int, words: list[str]) -> bool:
    numbered = item.upper()
    for offset, word in enumerate(words):
        numbered = re.sub(rf"\b{word}\b", str(least + offset), numbered)
    match = re.fullmatch(r"(?:\*|([0-9]{1,4})(?:-([0-9]{1,4}))?)(?:/([1-9][0-9]{0,3}))?", numbered)
    if match is None:
        return False
    return all(least <= int(n) <= greatest for n in match.groups()[:2] if n is not None)


Schedule = Annotated[str, AfterValidator(parse_schedule)]
