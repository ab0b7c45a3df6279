"""A session's log of events: what ran in a stretch of it, who asked, and when nothing ran."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import event_log
from benchmarks.event_log import EventLog, Query, idle_seconds

HERE = Path(__file__)


def job(number: int, at: int, ended: int, execution: str | None, stage: int) -> list[Any]:
    started: dict[str, Any] = {
        "Event": "SparkListenerJobStart", "Job ID": number, "Submission Time": at,
        "Stage IDs": [stage], "Stage Infos": [{"Stage Name": "hasNext at Native.java:0"}],
    }  # fmt: skip
    if execution:
        started["Properties"] = {"spark.sql.execution.id": execution}
    spent = {"Event": "SparkListenerTaskEnd", "Stage ID": stage}
    task = {**spent, "Task Metrics": {"Executor CPU Time": 250_000_000}}
    ended_event = {"Event": "SparkListenerJobEnd", "Job ID": number, "Completion Time": ended}
    return [started, task, task, ended_event]


def execution(number: int, description: str) -> dict[str, Any]:
    name = "org.apache.spark.sql.execution.ui.SparkListenerSQLExecutionStart"
    return {"Event": name, "executionId": number, "description": description}


@pytest.fixture
def log(tmp_path) -> EventLog:
    line = _line_of("def _line_of")
    events = [
        execution(7, f"collect at {HERE}:{line}"),
        execution(8, "append at NativeMethodAccessorImpl.java:0"),
        *job(0, 900, 990, "7", 0),  # before the stretch
        *job(1, 1_100, 1_200, "7", 1), *job(2, 1_300, 1_500, "7", 2),
        *job(3, 1_400, 1_800, "8", 3), *job(4, 1_900, 1_950, None, 4),
    ]  # fmt: skip
    (tmp_path / "app").write_text("".join(json.dumps(event) + "\n" for event in events))
    return EventLog.read(tmp_path)


def _line_of(text: str) -> int:
    lines = HERE.read_text().splitlines()
    return 1 + next(number for number, line in enumerate(lines) if line.startswith(text))


def test_jobs_of_one_query_are_one_and_named_by_the_function_that_asked(log):
    assert log.queries((1_000, 2_000)) == [
        Query(f"{HERE.name}: _line_of", began=0.1, ended=0.5, cpu_seconds=1.0, tasks=4),
        Query("append", began=0.4, ended=0.8, cpu_seconds=0.5, tasks=2),
        Query("hasNext", began=0.9, ended=0.95, cpu_seconds=0.5, tasks=2),
    ]


def test_the_driver_is_alone_where_no_query_runs(log):
    assert idle_seconds(log.queries((1_000, 2_000)), 1.0) == pytest.approx(0.25)


def test_events_are_written_where_they_are_looked_for(tmp_path):
    said = event_log.settings(tmp_path)
    assert said["spark.eventLog.dir"] == f"file://{tmp_path}"
