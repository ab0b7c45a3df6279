"""The wait for a job's process, and how far the job has come meanwhile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from cdclake import naming
from cdclake.activity import Advance, Step, listening
from cdclake.job_advance import JobAdvance
from cdclake.local.lake import spark_jobs
from cdclake.local.lake.spark_jobs import RunningJob
from cdclake.local.process import child_process
from cdclake.local.process.child_process import rotated_log
from cdclake.local.process.home import Home
from tests.source_tree import PROJECT
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


def test_report_of_a_job_is_deleted_when_it_is_read() -> None:
    control = MemoryStore()
    for name in (naming.advance_name("r"), naming.report_name("r")):
        control.write(name, {"ok": True})
    assert job_that_runs(0, control).report() == {"ok": True}
    assert control.stored == {}


STARTER = """
import sys
from pathlib import Path
from types import SimpleNamespace
from cdclake.local.lake import spark_jobs
from cdclake.local.process.home import Home

home = Home(Path(sys.argv[1]))
home.create()
spark_jobs._command = lambda *_: ["sleep", "600"]
spark_jobs._environment = lambda *_, **__: {}
spark_jobs.start_job(SimpleNamespace(home=home), "maintain_tables", {})
print("started", flush=True)
sys.stdin.read()
"""


def test_job_ends_with_a_command_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTER, str(tmp_path / "home")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=PROJECT
    ) as starter:
        assert starter.stdout is not None and starter.stdout.readline() == b"started\n"
        [process] = psutil.Process(starter.pid).children()
        starter.kill()
    assert psutil.wait_procs([process], timeout=10)[1] == []


def test_large_log_of_a_job_is_rotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(tmp_path)
    home.create()
    monkeypatch.setattr(child_process, "LOG_LIMIT_BYTES", 10)
    monkeypatch.setattr(spark_jobs, "_command", lambda *_: ["echo", "new"])
    monkeypatch.setattr(spark_jobs, "_environment", lambda *_, **__: {})
    home.log("poll_tables").write_text("more than the limit")
    lake: Any = SimpleNamespace(home=home)
    spark_jobs.start_job(lake, "poll_tables", {}).process.wait()
    assert home.log("poll_tables").read_text() == "new\n"
    assert rotated_log(home.log("poll_tables")).read_text() == "more than the limit"
