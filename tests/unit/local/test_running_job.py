"""The wait for a job's process, and how far the job has come meanwhile."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake import naming
from cdclake.activity import Advance, Step, listening
from cdclake.job_advance import JobAdvance
from cdclake.local.lake import spark_jobs
from cdclake.local.lake.spark_jobs import RunningJob
from tests.spark.events import MemoryStore


def job_that_runs(seconds: float, control: Any) -> RunningJob:
    process = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({seconds})"])
    lake: Any = SimpleNamespace(control=control)
    return RunningJob(lake, "maintain_tables", "r", process)


def test_job_is_awaited_and_its_progress_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_jobs, "_SHOWN_EVERY_S", 0.05)
    control = MemoryStore()
    control.write(naming.advance_name("r"), JobAdvance(done=1, total=2, table="t").to_json())
    shown = Step("run")
    listener: Any = SimpleNamespace(begin=None, end=None)
    job = job_that_runs(1, control)
    with listening(listener):
        job.wait(shown)
    assert job.process.poll() == 0
    assert shown.advance == Advance(done=1, total=2, unit="tables", now="t is done")
