"""When schedules in EventBridge's syntax start."""

from datetime import UTC, datetime, timedelta

import pytest

from cdclake.config.problems import Refused
from cdclake.config.schedule import parse_schedule
from cdclake.schedule_times import is_hourly, longest_days, next_start, runs_a_day

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)  # a Thursday


def starts(spelling: str, count: int, after: datetime = NEW_YEAR) -> list[str]:
    """The first starts of a schedule that a pipeline file may have."""
    assert parse_schedule(spelling) == spelling
    found = []
    for _ in range(count):
        at = next_start(spelling, after)
        if at is None:
            break
        found.append(at.isoformat()[:16])
        after = at
    return found


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("rate(90 minutes)", ["2026-01-01T01:30", "2026-01-01T03:00"]),
        ("rate(1 day)", ["2026-01-02T00:00", "2026-01-03T00:00"]),
        ("cron(0 3 * * ? *)", ["2026-01-01T03:00", "2026-01-02T03:00"]),
        ("cron(0 0 * * ? *)", ["2026-01-02T00:00", "2026-01-03T00:00"]),
        ("cron(30/20 8-9 ? * SAT-SUN *)", ["2026-01-03T08:30", "2026-01-03T08:50"]),
        ("cron(0 12 ? * mon,FRI *)", ["2026-01-02T12:00", "2026-01-05T12:00"]),
        ("cron(5 0 ? FEB 6 *)", ["2026-02-06T00:05", "2026-02-13T00:05"]),
        ("cron(0 1 L * ? *)", ["2026-01-31T01:00", "2026-02-28T01:00"]),
        ("cron(0 1 LW * ? *)", ["2026-01-30T01:00", "2026-02-27T01:00"]),
        ("cron(0 1 15W 2-3 ? *)", ["2026-02-16T01:00", "2026-03-16T01:00"]),
        ("cron(0 1 1W 8,11 ? *)", ["2026-08-03T01:00", "2026-11-02T01:00"]),
        ("cron(0 1 31W 1,5 ? *)", ["2026-01-30T01:00", "2026-05-29T01:00"]),
        ("cron(0 1 ? * FRIL *)", ["2026-01-30T01:00", "2026-02-27T01:00"]),
        ("cron(0 1 ? * 6L *)", ["2026-01-30T01:00", "2026-02-27T01:00"]),
        ("cron(0 1 ? * L *)", ["2026-01-03T01:00", "2026-01-10T01:00"]),
        ("cron(0 1 ? * MON#2 *)", ["2026-01-12T01:00", "2026-02-09T01:00"]),
        ("cron(0 1 29 2 ? *)", ["2028-02-29T01:00", "2032-02-29T01:00"]),
        ("cron(0 1 1 1 ? 2027)", ["2027-01-01T01:00"]),
        ("cron(0 1 1 1 ? 2060)", ["2060-01-01T01:00"]),
        ("cron(0 1 1 1 ? 2026-2027)", ["2026-01-01T01:00", "2027-01-01T01:00"]),
    ],
)
def test_the_first_two_starts(spelling: str, expected: list[str]) -> None:
    assert starts(spelling, 2) == expected


@pytest.mark.parametrize(
    "spelling",
    ["cron(0 1 30 2 ? *)", "cron(0 1 31 4,6 ? *)", "cron(0 1 1 1 ? 2020-2025)",
     "cron(0 1 29 2 ? 2027)"],
)  # fmt: skip
def test_a_schedule_that_never_starts_is_refused(spelling: str) -> None:
    assert next_start(spelling, NEW_YEAR) is None
    with pytest.raises(Refused, match="never starts"):
        parse_schedule(spelling)


def test_a_start_is_after_the_given_time_to_the_second() -> None:
    three = datetime(2026, 1, 1, 3, tzinfo=UTC)
    assert next_start("cron(0 3 * * ? *)", three - timedelta(seconds=1)) == three
    assert next_start("cron(0 3 * * ? *)", three) == three + timedelta(days=1)


@pytest.mark.parametrize(
    ("spelling", "times"),
    [
        ("rate(1 day)", 1), ("cron(0 3 * * ? *)", 1), ("cron(0/15 3-4 * * ? *)", 8),
        ("cron(0 3 L * ? *)", 48 / 1461), ("cron(0 3 ? JAN-MAR MON#1 *)", 12 / 1461),
        ("cron(0 3 1 1 ? 2028)", 1 / 1461),
    ],
)  # fmt: skip
def test_how_often_a_schedule_starts_a_day(spelling: str, times: float) -> None:
    assert runs_a_day(spelling) == times


@pytest.mark.parametrize(
    ("spelling", "days"),
    [
        ("rate(15 minutes)", 1),
        ("rate(36 hours)", 2),
        ("rate(14 days)", 14),
        ("cron(0 3,15 * * ? *)", 1),
        ("cron(0 5 ? * MON-FRI *)", 3),
        ("cron(0 5 ? * MON *)", 7),
        ("cron(0 5 1 * ? *)", 31),
        ("cron(0 5 1 1 ? *)", 366),
        ("cron(0 5 * * ? 2026)", 4 * 365 + 2),
    ],
)
def test_the_longest_interval_between_two_starts(spelling: str, days: int) -> None:
    assert parse_schedule(spelling) == spelling
    assert longest_days(spelling) == days


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        ("rate(1 hour)", True),
        ("rate(61 minutes)", False),
        ("cron(7 * * * ? *)", True),
        ("cron(0/5 0-22 * * ? *)", False),
        ("cron(0/5 * ? * MON-SAT *)", False),
        ("cron(0/5 * 1-30 * ? *)", False),
    ],
)
def test_a_schedule_is_hourly_if_it_never_pauses_longer(spelling: str, expected: bool) -> None:
    assert parse_schedule(spelling) == spelling
    assert is_hourly(spelling) is expected
