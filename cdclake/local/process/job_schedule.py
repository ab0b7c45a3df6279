"""The supervisor's schedule: which job is due, and how the last run of each has ended.

One scheduled job runs at a time, next to the stream. Last runs are kept in a file, so a restarted
lake goes on where the schedule was; a run that was missed meanwhile starts at once, once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from cdclake.local.process.home import Home, read_json
from cdclake.local.process.process_spec import ScheduledJob
from cdclake.local.process.supervisor_files import StateFile
from cdclake.schedule_times import next_start


@dataclass(frozen=True, slots=True, kw_only=True)
class LastRun:
    """The last run of a job; without an exit code it runs, or was interrupted."""

    since: str  # ISO time: the start of the last run, or when the job was first scheduled
    started_at: str | None = None
    ended_at: str | None = None
    exit_code: int | None = None


class JobSchedule:
    """Due times of the scheduled jobs; the caller starts and reaps the processes."""

    def __init__(self, home: Home) -> None:
        self._file = StateFile(home.run / "schedules.json")
        stored = read_json(self._file.path)
        self._runs = {
            name: LastRun(**{field: entry.get(field) for field in LastRun.__slots__})
            for name, entry in stored.items()
        }
        now = datetime.now(UTC)
        for name, run in self._runs.items():
            if run.started_at is not None and run.ended_at is None:  # a supervisor died over it
                self.ended(name, None, now)
        self.jobs: tuple[ScheduledJob, ...] = ()

    def follow(self, jobs: Sequence[ScheduledJob], now: datetime) -> None:
        """Take up these jobs; a new one is first due after its own schedule."""
        self.jobs = tuple(jobs)
        for job in jobs:
            run = self._runs.get(job.name, LastRun(since=_text(now)))
            # A run that was noted while the clock was ahead would delay the next until then.
            since = min(run.since, _text(now), key=datetime.fromisoformat)
            self._runs[job.name] = replace(run, since=since)
        self._save()

    def due(self, now: datetime) -> ScheduledJob | None:
        """Return the job that is due longest, or None."""
        waiting = [
            (at, job) for job in self.jobs if (at := self.next_of(job)) is not None and at <= now
        ]
        return min(waiting, key=lambda each: each[0], default=(now, None))[1]

    def next_of(self, job: ScheduledJob) -> datetime | None:
        """Return the job's next start."""
        return next_start(job.schedule, datetime.fromisoformat(self._runs[job.name].since))

    def started(self, name: str, now: datetime) -> None:
        """Note that a job has started."""
        self._runs[name] = LastRun(since=_text(now), started_at=_text(now))
        self._save()

    def ended(self, name: str, exit_code: int | None, now: datetime) -> None:
        """Note how a job has ended; without an exit code it was interrupted."""
        run = self._runs[name]
        self._runs[name] = replace(run, ended_at=_text(now), exit_code=exit_code)
        self._save()

    def report(self) -> list[dict[str, Any]]:
        """Return for each job its schedule, last run and next start."""
        return [
            {
                "job": job.name,
                "schedule": job.schedule,
                "last_run": self._runs[job.name].started_at,
                "ended_at": self._runs[job.name].ended_at,
                "exit_code": self._runs[job.name].exit_code,
                "next_run": None if (at := self.next_of(job)) is None else _text(at),
            }
            for job in self.jobs
        ]

    def save_again(self) -> None:
        """Store the last runs if the last attempt failed."""
        if self._file.failed:
            self._save()

    def _save(self) -> None:
        entries = {
            name: {field: getattr(run, field) for field in LastRun.__slots__}
            for name, run in self._runs.items()
        }
        self._file.write(json.dumps(entries))


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")
