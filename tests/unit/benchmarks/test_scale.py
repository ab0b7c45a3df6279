"""Figures of the scale measures, and their part of the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.event_log import EventLog
from benchmarks.orders import COLUMNS
from benchmarks.page import page
from benchmarks.scale import SCALE_MEASURES
from benchmarks.scale.cluster import _shares
from benchmarks.scale.columns import WIDE, _plan, _us_per_change, _values
from benchmarks.scale.run_tables import SCALE_TITLES

WITHIN = (1_000.0, 2_000.0)


def job(number: int, at: int, operator: str) -> dict[str, Any]:
    stage = {"Stage Name": "call at clientserver.py:617", "RDD Info": [{"Name": operator}]}
    return {
        "Event": "SparkListenerJobStart", "Job ID": number, "Submission Time": at,
        "Stage IDs": [number], "Stage Infos": [stage],
    }  # fmt: skip


def task(stage: int, fetched: int) -> dict[str, Any]:
    metrics = {"Executor CPU Time": 1, "Shuffle Read Metrics": {"Remote Bytes Read": fetched}}
    return {"Event": "SparkListenerTaskEnd", "Stage ID": stage, "Task Metrics": metrics}


def block(executor: str, block_id: str) -> dict[str, Any]:
    updated = {
        "Block Manager ID": {"Executor ID": executor}, "Block ID": block_id,
        "Memory Size": 70, "Disk Size": 0,
    }  # fmt: skip
    return {"Event": "SparkListenerBlockUpdated", "Block Updated Info": updated}


@pytest.fixture
def log(tmp_path: Path) -> EventLog:
    events = [
        job(0, 900, "MapInArrow"), task(0, 5), block("1", "broadcast_0_piece0"),
        job(1, 1_100, "MapInArrow"), task(1, 7), task(1, 0), block("1", "broadcast_1_piece0"),
        block("driver", "broadcast_1_piece0"), block("1", "taskresult_3"),
        job(2, 1_200, "ParallelCollectionRDD"), task(2, 4),
    ]  # fmt: skip
    (tmp_path / "app").write_text("".join(json.dumps(event) + "\n" for event in events))
    return EventLog.read(tmp_path)


def test_tasks_are_counted_by_the_operator_of_their_job(log: EventLog) -> None:
    assert log.tasks_of("MapInArrow", WITHIN) == [2]
    assert log.tasks_of("ParallelCollectionRDD", WITHIN) == [1]


def test_exchanged_bytes_leave_out_the_driver_and_other_times(log: EventLog) -> None:
    assert log.exchanged_bytes(WITHIN) == (11, 70)


def test_busiest_share_is_of_what_was_spent_meanwhile() -> None:
    found = _shares({"0": 10.0, "1": 1.0}, {"0": 11.0, "1": 4.0})
    assert found["task_cpu_seconds"] == {"0": 1.0, "1": 3.0}
    assert found["busiest_share_of_task_cpu"] == 0.75


def test_cost_of_a_change_is_the_difference_of_two_batches() -> None:
    runs = [
        {"columns": 9, "changes": 1_000, "cpu_seconds": 0.5},
        {"columns": 9, "changes": 101_000, "cpu_seconds": 1.5},
        {"columns": 400, "changes": 10, "cpu_seconds": 9.0},
        {"columns": 400, "changes": 20, "cpu_seconds": 9.1},
    ]
    assert _us_per_change(runs, 9) == pytest.approx(10)
    assert _us_per_change(runs, 400) == pytest.approx(10_000)


def test_wide_table_has_a_value_for_each_further_column() -> None:
    [table] = _plan(WIDE).tables
    assert len(table.columns) == WIDE
    names = [column.name for column in table.columns]
    assert names == [*COLUMNS, *dict(_values(WIDE))]


def test_page_shows_every_run_of_a_scale_measure() -> None:
    runs = [
        {"files": 8, "of": "the first batch", "seconds": 1.5, "s3_requests": 1_200},
        {"files": 8_000, "of": "the first batch", "seconds": None, "s3_requests": {"0": 2, "1": 3}},
    ]
    measured = {"commit": "1234567", "at": "2026-01-01 00:00 UTC"}
    cost = {"measured": measured, "ours": {"x": 1}, "target": {}, "runs": runs * 2}
    text = page({"machine": {}, "versions": {}, "measures": dict.fromkeys(SCALE_MEASURES, cost)})
    assert "| files | of | seconds | s3 requests |" in text
    assert "| 8 | the first batch | 1.5 | 1,200 |" in text
    assert "| 8,000 | the first batch | - | 2, 3 |" in text
    assert all(f"### {name}: {title}" in text for name, title in SCALE_TITLES.items())
