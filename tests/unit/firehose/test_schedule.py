"""When the apply job runs for what Firehose delivers."""

import threading
from typing import Any

import pytest

from cdclake.local.firehose import schedule
from cdclake.local.firehose.schedule import ApplySchedule, seconds_between


class Process:
    """A job's process that ends at once."""

    def __init__(self, code: int) -> None:
        self.code, self.killed = code, False

    def wait(self, timeout: float) -> int:
        return self.code

    def kill(self) -> None:
        self.killed = True


class Job:
    def __init__(self, code: int) -> None:
        self.process = Process(code)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("rate(1 minute)", 60), ("rate(5 minutes)", 300), ("rate(2 hours)", 7200),
        ("rate(1 day)", 86400), ("cron(0 3 * * ? *)", 300),
    ],
)  # fmt: skip
def test_a_schedule_in_seconds(written: str, seconds: float) -> None:
    assert seconds_between(written) == seconds


def test_the_job_runs_when_there_is_something_new_and_again_after_it_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commits, codes = iter([3, 3, 4, 4, 4]), iter([0, 1, 0])
    started: list[dict[str, str]] = []
    stop = threading.Event()

    def start_job(lake: Any, job: str, arguments: dict[str, str]) -> Job:
        started.append(arguments)
        return Job(next(codes))

    def next_commits() -> int:
        count = next(commits, None)
        if count is None:
            stop.set()
        return count or 4

    class Lake:
        control = None

    freed: list[str] = []

    class NoLeases:
        def __init__(self, control: None, job: str) -> None:
            self.job = job

        def abandon_earlier_runs(self) -> None:
            freed.append(self.job)

    monkeypatch.setattr(schedule, "start_job", start_job)
    monkeypatch.setattr(schedule, "Leases", NoLeases)
    made = ApplySchedule(Lake(), ["a", "b"], 0.0, next_commits)  # type: ignore[arg-type]
    made.run(stop)
    # At 3, not again at 3, at 4, at 4 again since that failed, and then no more.
    assert started == [{"tables": "a,b"}] * 3
    assert freed == ["apply_changes"]
