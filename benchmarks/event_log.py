"""Where a stretch of a session's time went, by Spark's own log of its events."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Moments = tuple[float, float]  # milliseconds of the clock: from, and to
_CALLED_FROM = re.compile(r"^(\w+) at (/.+\.py):(\d+)$")
_EXECUTION = "spark.sql.execution.id"


@dataclass(slots=True)
class Query:
    """One query's jobs together; seconds since the stretch began, and CPU seconds of its tasks."""

    name: str  # who asked, as far as Spark knows: `file.py: function`, or the action alone
    began: float
    ended: float
    cpu_seconds: float = 0.0
    tasks: int = 0


def settings(folder: Path) -> dict[str, str]:
    """What has a session write its events to the folder, which is there."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.compress": "false",
    }


@dataclass(slots=True)
class EventLog:
    """The events of a session that has ended."""

    jobs: dict[int, dict[str, Any]] = field(default_factory=dict)
    ends: dict[int, float] = field(default_factory=dict)  # of jobs
    actions: dict[str, str] = field(default_factory=dict)  # by execution, where Spark says it
    spent: dict[int, list[float]] = field(default_factory=dict)  # by stage, each task's CPU
    fetched: list[tuple[float, int]] = field(default_factory=list)  # by a task from other executors
    broadcast: list[tuple[float, int]] = field(default_factory=list)  # received by an executor
    _now: float = 0.0  # the newest job's begin: block updates have no time

    @classmethod
    def read(cls, folder: Path) -> EventLog:
        """The only session's in the folder."""
        log = cls()
        [file] = folder.iterdir()
        with file.open() as lines:
            for line in lines:
                log._take(json.loads(line))
        return log

    def queries(self, within: Moments) -> list[Query]:
        """Those begun between the two moments, in the order in which they began."""
        began, ended = within
        found: dict[str, Query] = {}
        for number, job in sorted(self.jobs.items()):
            at = job["Submission Time"]
            if not began <= at <= ended:
                continue
            execution = job.get("Properties", {}).get(_EXECUTION, f"job {number}")
            since = (at - began) / 1000
            query = found.setdefault(execution, Query(self._name(execution, job), since, since))
            query.ended = max(query.ended, (self.ends[number] - began) / 1000)
            tasks = [cpu for stage in job["Stage IDs"] for cpu in self.spent.get(stage, ())]
            query.tasks += len(tasks)
            query.cpu_seconds += sum(tasks)
        return list(found.values())

    def tasks_of(self, operator: str, within: Moments) -> list[int]:
        """Return the number of tasks of each job with this operator that began meanwhile.

        Within a streaming query's batch every job has the name of the query.
        """
        return [
            sum(len(self.spent.get(stage, ())) for stage in job["Stage IDs"])
            for job in self.jobs.values()
            if within[0] <= job["Submission Time"] <= within[1] and _has(job, operator)
        ]

    def exchanged_bytes(self, within: Moments) -> tuple[int, int]:
        """Return bytes that tasks fetched from other executors, and bytes of broadcasts.

        An executor receives a broadcast from the driver or from another executor.
        """
        fetched, broadcast = (
            sum(size for at, size in of_kind if within[0] <= at <= within[1])
            for of_kind in (self.fetched, self.broadcast)
        )
        return fetched, broadcast

    def _take(self, event: Mapping[str, Any]) -> None:
        match event["Event"].rpartition(".")[2]:
            case "SparkListenerJobStart":
                self.jobs[event["Job ID"]] = dict(event)
                self._now = event["Submission Time"]
            case "SparkListenerJobEnd":
                self.ends[event["Job ID"]] = event["Completion Time"]
            case "SparkListenerSQLExecutionStart":
                self.actions[str(event["executionId"])] = event["description"]
            case "SparkListenerTaskEnd":
                spent = event["Task Metrics"]["Executor CPU Time"] / 1e9
                self.spent.setdefault(event["Stage ID"], []).append(spent)
                reads = event["Task Metrics"].get("Shuffle Read Metrics", {})
                self.fetched.append((self._now, reads.get("Remote Bytes Read", 0)))
            case "SparkListenerBlockUpdated":
                block = event["Block Updated Info"]
                is_driver = block["Block Manager ID"]["Executor ID"] == "driver"
                if block["Block ID"].startswith("broadcast_") and not is_driver:
                    self.broadcast.append((self._now, block["Memory Size"] + block["Disk Size"]))

    def _name(self, execution: str, job: Mapping[str, Any]) -> str:
        action = self.actions.get(execution) or job["Stage Infos"][-1]["Stage Name"]
        called = _CALLED_FROM.match(action)
        if called is None:
            return str(action.partition(" at ")[0])
        return f"{Path(called[2]).name}: {_function_at(Path(called[2]), int(called[3]))}"


def idle_seconds(queries: Sequence[Query], seconds: float) -> float:
    """How many of the stretch's seconds no query's job ran in: the driver was at work alone."""
    busy, reached = 0.0, 0.0
    for query in sorted(queries, key=lambda query: query.began):
        busy += max(query.ended - max(query.began, reached), 0.0)
        reached = max(reached, query.ended)
    return max(seconds - busy, 0.0)


def _has(job: Mapping[str, Any], operator: str) -> bool:
    found = (rdd for stage in job["Stage Infos"] for rdd in stage["RDD Info"])
    return any(operator in f"{rdd['Name']} {rdd.get('Scope')}" for rdd in found)


def _function_at(file: Path, line: int) -> str:
    """The innermost function that holds the line."""
    holding = [node for node in _functions(file) if node.lineno <= line <= (node.end_lineno or 0)]
    return max(holding, key=lambda node: node.lineno).name if holding else file.stem


def _functions(file: Path) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef):
            yield node
