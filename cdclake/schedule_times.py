"""When a schedule in EventBridge's syntax starts next: `rate(5 minutes)`, `cron(0 3 * * ? *)`.

Source: EventBridge Scheduler user guide, "Schedule types". All times are UTC, with whole minutes.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise

MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
WEEKDAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
_DAY_MINUTES = 24 * 60
_UNITS = {"minute": 1, "hour": 60, "day": _DAY_MINUTES}
_AVERAGED_FROM, _AVERAGED_DAYS = date(2027, 1, 1), 4 * 365 + 1
_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")


@lru_cache(maxsize=64)  # the supervisor asks several times a second
def next_start(spelling: str, after: datetime) -> datetime | None:
    """Return the first start after this time; None if a cron schedule has no later one.

    A rate counts from `after`, the last start. The schedule must be valid.

    >>> next_start("rate(2 hours)", datetime(2026, 1, 1, tzinfo=UTC)).isoformat()
    '2026-01-01T02:00:00+00:00'
    >>> next_start("cron(0 3 ? * MON *)", datetime(2026, 1, 1, tzinfo=UTC)).isoformat()
    '2026-01-05T03:00:00+00:00'
    """
    rate = rate_minutes(spelling)
    if rate is not None:
        return after + timedelta(minutes=rate)
    return _Cron.parse(spelling).next_after(after)


def runs_a_day(spelling: str) -> float:
    """Return how often a valid schedule starts a day, on average over the years 2027 to 2030.

    >>> runs_a_day("rate(15 minutes)"), runs_a_day("cron(0 3,4 ? * * *)")
    (96.0, 2.0)
    """
    rate = rate_minutes(spelling)
    if rate is not None:
        return _DAY_MINUTES / rate
    cron = _Cron.parse(spelling)
    return len(cron.minutes) * len(cron.hours) * len(cron.days_on()) / _AVERAGED_DAYS


def longest_days(spelling: str) -> int:
    """Return the most days, rounded up, between two runs of a valid schedule.

    Those of a cron schedule are between its days of the years 2027 to 2030.

    >>> longest_days("rate(36 hours)"), longest_days("cron(0 5 ? * MON-FRI *)")
    (2, 3)
    """
    rate = rate_minutes(spelling)
    if rate is not None:
        return -(-rate // _DAY_MINUTES)
    days = [-1, *_Cron.parse(spelling).days_on(), _AVERAGED_DAYS]
    return max(later - earlier for earlier, later in pairwise(days))


def is_hourly(spelling: str) -> bool:
    """Check whether at most an hour is between two runs of a valid schedule.

    >>> is_hourly("rate(60 minutes)"), is_hourly("cron(0/5 8-18 * * ? *)")
    (True, False)
    """
    rate = rate_minutes(spelling)
    if rate is not None:
        return rate <= 60
    return len(_Cron.parse(spelling).hours) == 24 and longest_days(spelling) == 1


def rate_minutes(spelling: str) -> int | None:
    """Return the minutes between the runs of a valid rate; None for a cron schedule."""
    match = _RATE.fullmatch(spelling)
    return None if match is None else int(match[1]) * _UNITS[match[2]]


def cron_minutes(spelling: str) -> list[int]:
    """Return the minutes of an hour at which a valid cron schedule starts, in order."""
    return sorted(_numbers(_fields(spelling)[0], 0, 59))


def _fields(spelling: str) -> list[str]:
    return spelling[spelling.index("(") + 1 : -1].upper().split()


@dataclass(frozen=True, slots=True)
class _Cron:
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: str
    months: frozenset[int]
    weekdays: str
    years: frozenset[int]

    @staticmethod
    def parse(spelling: str) -> _Cron:
        """Parse a valid cron schedule."""
        _, hours, days, months, weekdays, years = _fields(spelling)
        return _Cron(
            minutes=tuple(cron_minutes(spelling)),
            hours=tuple(sorted(_numbers(hours, 0, 23))),
            days=days,
            months=frozenset(_numbers(_numbered(months, MONTHS), 1, 12)),
            weekdays=_numbered(weekdays, WEEKDAYS),
            years=frozenset(_numbers(years, 1970, 2199)),
        )

    def next_after(self, after: datetime) -> datetime | None:
        """Return the first start later than `after`."""
        day, last_year = after.astimezone(UTC).date(), max(self.years)
        while day.year <= last_year:
            if self.is_on(day):
                for hour in self.hours:
                    for minute in self.minutes:
                        at = datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC)
                        if at > after:
                            return at
            day += timedelta(days=1)
        return None

    def days_on(self) -> list[int]:
        """Return the days with starts in the years 2027 to 2030, as numbers from the first day."""
        return [
            offset
            for offset in range(_AVERAGED_DAYS)
            if self.is_on(_AVERAGED_FROM + timedelta(days=offset))
        ]

    def is_on(self, day: date) -> bool:
        """Check whether the schedule has starts on this day."""
        if day.year not in self.years or day.month not in self.months:
            return False
        if self.days == "?":
            return any(_is_weekday(item, day) for item in self.weekdays.split(","))
        return any(_is_day(item, day) for item in self.days.split(","))


def _is_day(item: str, day: date) -> bool:
    """Check whether a day of month matches: a number, `L` the last, `LW`, or `15W` the nearest."""
    last = calendar.monthrange(day.year, day.month)[1]
    if item == "L":
        return day.day == last
    if item == "LW":
        return day == _nearest_weekday(day.replace(day=last))
    if item.endswith("W"):
        wanted = min(int(item[:-1]), last)
        return day == _nearest_weekday(day.replace(day=wanted))
    return day.day in _numbers(item, 1, 31)


def _nearest_weekday(day: date) -> date:
    """Return the working day nearest to a day, in the same month."""
    weekday = day.isoweekday()
    if weekday == 6:
        return day - timedelta(days=1) if day.day > 1 else day + timedelta(days=2)
    if weekday == 7:
        last = calendar.monthrange(day.year, day.month)[1]
        return day + timedelta(days=1) if day.day < last else day - timedelta(days=2)
    return day


def _is_weekday(item: str, day: date) -> bool:
    """Check whether a day of week matches: 1 to 7 from Sunday, `6L` the last, `6#3` the third."""
    today = day.isoweekday() % 7 + 1
    if item == "L":
        return today == 7
    if item.endswith("L"):
        return today == int(item[:-1]) and (day + timedelta(days=7)).month != day.month
    if "#" in item:
        wanted, count = map(int, item.split("#"))
        return today == wanted and (day.day - 1) // 7 + 1 == count
    return today in _numbers(item, 1, 7)


def _numbered(field: str, names: list[str]) -> str:
    for number, name in enumerate(names, 1):
        field = re.sub(rf"\b{name}(?=\b|L)", str(number), field)
    return field


def _numbers(field: str, least: int, greatest: int) -> set[int]:
    """Return the numbers that a list of `*`, `n`, `n-m`, `n/step`, `n-m/step` means.

    A range may pass the greatest number, like FRI-MON.
    """
    found: set[int] = set()
    for item in field.split(","):
        span, _, step = item.partition("/")
        begin, _, end = span.partition("-")
        first = least if begin in ("*", "?") else int(begin)
        last = int(end) if end else greatest if step or begin in ("*", "?") else first
        size = greatest - least + 1
        last += size if last < first else 0
        found |= {(n - least) % size + least for n in range(first, last + 1, int(step or 1))}
    return found
