"""Jobs on a schedule: when they are due, what is remembered, and the supervisor that runs them."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cdclake.cli.status_text import _runs
from cdclake.local.process import supervisor_client
from cdclake.local.process.home import Home
from cdclake.local.process.job_schedule import JobSchedule
from cdclake.local.process.process_spec import ScheduledJob, Spec
from cdclake.local.process.supervisor_client import Component
from tests.unit.local.test_supervisor import left_over, wait_until

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    found = Home(tmp_path / "home")
    found.create()
    yield found
    supervisor_client.stop(found)


def job(home: Home, name: str, schedule: str, script: str = "exit 0") -> ScheduledJob:
    spec = Spec(
        name, ("/bin/sh", "-c", script), {"PATH": os.environ["PATH"]}, log=str(home.log(name))
    )
    return ScheduledJob(schedule, spec)


def test_the_job_that_is_due_longest_is_next(home: Home) -> None:
    schedule = JobSchedule(home)
    hourly, often = job(home, "hourly", "rate(1 hour)"), job(home, "often", "rate(5 minutes)")
    schedule.follow([hourly, often], NOON)
    assert schedule.due(NOON + 4 * MINUTE) is None
    assert schedule.due(NOON + 5 * MINUTE) == often
    schedule.started("often", NOON + 58 * MINUTE)
    assert schedule.due(NOON + 62 * MINUTE) == hourly
    assert schedule.due(NOON + 90 * MINUTE) == hourly  # due at 60, the other at 63
    schedule.started("hourly", NOON + 90 * MINUTE)
    assert schedule.due(NOON + 90 * MINUTE) == often


def test_a_run_that_was_missed_while_the_lake_was_down_starts_once(home: Home) -> None:
    daily = job(home, "daily", "cron(0 3 * * ? *)")
    schedule = JobSchedule(home)
    schedule.follow([daily], NOON)
    schedule.started("daily", NOON + timedelta(hours=15))
    schedule.ended("daily", 0, NOON + timedelta(hours=15, minutes=2))
    later = NOON + timedelta(days=3)
    again = JobSchedule(home)
    again.follow([daily], later)
    assert again.due(later) == daily
    again.started("daily", later)
    assert again.due(later) is None
    [report] = again.report()
    assert report == {
        "job": "daily",
        "schedule": "cron(0 3 * * ? *)",
        "last_run": "2026-01-04T12:00:00+00:00",
        "ended_at": None,
        "exit_code": None,
        "next_run": "2026-01-05T03:00:00+00:00",
    }
    assert _runs(report).startswith("running since 2026-01-04")


def test_run_noted_while_the_clock_was_ahead_delays_nothing(home: Home) -> None:
    often = job(home, "often", "rate(5 minutes)")
    ahead = JobSchedule(home)
    ahead.follow([often], NOON)
    ahead.started("often", NOON + timedelta(days=1000))
    again = JobSchedule(home)
    again.follow([often], NOON)
    assert again.due(NOON + 4 * MINUTE) is None
    assert again.due(NOON + 5 * MINUTE) == often


def test_a_job_that_a_dead_supervisor_ran_was_interrupted(home: Home) -> None:
    daily = job(home, "daily", "rate(1 day)")
    schedule = JobSchedule(home)
    schedule.follow([daily], NOON)
    assert _runs(schedule.report()[0]).startswith("not run yet, next 2026-01-02T12")
    schedule.started("daily", NOON + timedelta(days=1))
    again = JobSchedule(home)
    again.follow([daily], NOON + timedelta(days=1))
    [report] = again.report()
    assert report["ended_at"] is not None and report["exit_code"] is None
    assert "was interrupted, next 2026-01-03" in _runs(report)
    schedule.ended("daily", 4, NOON)
    assert "ended with 4" in _runs(schedule.report()[0])


def supervise(home: Home, due: ScheduledJob) -> None:
    """Start a supervisor with a process, and give it this job, whose schedule began long ago."""
    entry = {"since": NOON.isoformat(), "started_at": None, "ended_at": None, "exit_code": None}
    (home.run / "schedules.json").write_text(json.dumps({due.name: entry}))
    waiting = Spec("a", ("sleep", "600"), {"PATH": os.environ["PATH"]}, log=str(home.log("a")))
    supervisor_client.ensure(home, [Component(waiting, lambda: True, timeout_s=5)])
    supervisor_client.schedule(home, [due])


def test_the_supervisor_runs_what_is_due_and_reports_how_it_ended(home: Home) -> None:
    supervise(home, job(home, "due", "rate(1 hour)", f"echo x >> {home.run}/ran; exit 3"))

    def has_ended() -> bool:
        [report] = supervisor_client.observe(home).schedules
        return bool(report["exit_code"] == 3)

    wait_until(has_ended)
    assert (home.run / "ran").read_text() == "x\n"
    supervisor_client.schedule(home, [])
    wait_until(lambda: supervisor_client.observe(home).schedules == ())
    assert [seen.state for seen in supervisor_client.observe(home).components] == ["running"]


def test_the_supervisor_stops_a_running_job_with_what_that_has_started(home: Home) -> None:
    script = f"setsid sleep 600 & echo x > {home.run}/ran; sleep 600"
    supervise(home, job(home, "due", "rate(1 hour)", script))
    wait_until((home.run / "ran").exists)
    supervisor_client.stop(home)
    assert left_over(home) == []
    schedule = JobSchedule(home)
    schedule.follow([job(home, "due", "rate(1 hour)")], datetime.now(UTC))
    assert "was interrupted" in _runs(schedule.report()[0])
