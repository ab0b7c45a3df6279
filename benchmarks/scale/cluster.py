"""N8a: the stream on four executors: their shares of the work, bytes exchanged, tasks per job.

Spark starts the executors as processes of this machine (`local-cluster`), each with one core. With
fewer cores than executors, seconds say nothing; shares, bytes and numbers of tasks do.
"""

from __future__ import annotations

import os
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pyspark
from pyspark.sql import SparkSession

from benchmarks import event_log
from benchmarks.dataset import DataSet
from benchmarks.event_log import EventLog, Moments
from benchmarks.metering import medians
from benchmarks.ours import Ours
from benchmarks.results import meets_all
from benchmarks.scale.fed_stream import fed_stream
from benchmarks.session import PROJECT, open_session
from benchmarks.sizes import Size
from benchmarks.steps import Steps
from benchmarks.stream_batches import BatchMeter, plan_of, stream_records
from benchmarks.threads import PYTHON, cpu_by_thread

EXECUTORS, TABLES = 4, 20
TARGET: Mapping[str, float] = {
    "busiest_share_of_task_cpu": 0.35, "bytes_between_executors_per_event": 1.0,
    "changelog_tasks": EXECUTORS, "state_tasks": EXECUTORS,
}  # fmt: skip
_MEMORY_MIB = 1024
_START_SECONDS = 60.0
_EXECUTOR, _EXECUTOR_ID = "CoarseGrainedExecutorBackend", "--executor-id"


def measure_cluster(size: Size, work: Path, steps: Steps) -> dict[str, Any]:
    """N8a: twenty tables, which count, and one table, to compare with."""
    runs = [
        steps.take(f"{tables} tables", partial(_run, size, work, tables)) for tables in (TABLES, 1)
    ]
    ours = {name: runs[0][name] for name in (*TARGET, "broadcast_bytes_per_event")}
    met = meets_all(ours, TARGET)
    return {"ours": ours, "peers": {}, "target": TARGET, "met": met, "runs": runs}


def _run(size: Size, work: Path, tables: int) -> dict[str, Any]:
    data = DataSet(
        folder=work / "data", rows=size.rows, changes=size.events, batches=size.batches,
        warm_up=size.warm_up, keys="zipf",
    ).make()  # fmt: skip
    with fed_stream(work, plan_of(tables, "each_batch")) as (place, brokers):
        question = {
            "batches": [str(file) for file in data.batch_files],
            "warm_up": size.warm_up, "tables": tables, "changes": size.events, "brokers": brokers,
        }  # fmt: skip
        found = place.ask("benchmarks.scale.cluster", question)
    return {"tables": tables, "changes": size.events, **found}


def take(
    *,
    warehouse: str,
    scratch: str,
    batches: Sequence[str],
    warm_up: int,
    tables: int,
    changes: int,
    brokers: dict[str, str],
) -> Mapping[str, Any]:
    """Return the figures of all batches after the warm-up together."""
    plan = plan_of(tables, "each_batch")
    log_folder = Path(scratch).with_name("events")
    log_folder.mkdir()
    meter = _ClusterMeter()
    spark = _open_cluster(warehouse, Path(scratch), log_folder)
    try:
        taken = stream_records(spark, plan, batches, brokers, scratch, changes, meter=meter)
    finally:
        spark.stop()
    figures = taken[warm_up:]
    within = (meter.looked_at[warm_up], meter.looked_at[-1])
    log = EventLog.read(log_folder)
    return {
        **medians(figures),
        **_shares(meter.task_cpu[warm_up], meter.task_cpu[-1]),
        **_exchanged(log, within, changes * len(figures)),
        "changelog_tasks": _tasks(log, "MapInArrow", within),
        "state_tasks": _tasks(log, "ParallelCollectionRDD", within),
    }


def _shares(before: Mapping[str, float], after: Mapping[str, float]) -> dict[str, Any]:
    spent = {executor: after[executor] - before[executor] for executor in sorted(after)}
    return {
        "task_cpu_seconds": {executor: round(cpu, 2) for executor, cpu in spent.items()},
        "busiest_share_of_task_cpu": round(max(spent.values()) / sum(spent.values()), 3),
    }


def _exchanged(log: EventLog, within: Moments, events: int) -> dict[str, float]:
    fetched, broadcast = log.exchanged_bytes(within)
    return {
        "bytes_between_executors_per_event": round(fetched / events, 3),
        "broadcast_bytes_per_event": round(broadcast / events, 3),
    }


def _tasks(log: EventLog, operator: str, within: Moments) -> float:
    """Return the median number of tasks of the jobs with an operator that no other job has."""
    return float(statistics.median(log.tasks_of(operator, within)))


@dataclass(slots=True)
class _ClusterMeter(BatchMeter):
    """A meter that notes each executor's CPU seconds in tasks as well."""

    looked_at: list[float] = field(default_factory=list)  # milliseconds of the clock
    task_cpu: list[Mapping[str, float]] = field(default_factory=list)

    def look(self) -> None:
        """Note what was spent so far."""
        BatchMeter.look(self)
        self.looked_at.append(time.time() * 1000)
        self.task_cpu.append(_task_cpu())


def _task_cpu() -> Mapping[str, float]:
    """Return the CPU seconds so far in tasks, by executor: Java's threads of tasks, and Python."""
    spent: defaultdict[str, float] = defaultdict(float)
    for executor, process in _executors().items():
        for thread, seconds in cpu_by_thread([process, *process.children(recursive=True)]).items():
            if thread.kind in ("tasks", PYTHON):
                spent[executor] += seconds
    return spent


def _executors() -> dict[str, psutil.Process]:
    found = {}
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # a Python worker that has just ended
            words = process.cmdline()
            if any(word.endswith(_EXECUTOR) for word in words):
                found[words[words.index(_EXECUTOR_ID) + 1]] = process
    return found


def _open_cluster(warehouse: str, scratch: Path, log_folder: Path) -> SparkSession:
    """Open a session, and wait until all executors have started."""
    os.environ["SPARK_HOME"] = str(_spark_home(scratch.with_name("spark-home")))
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    executors = {
        "spark.executor.memory": f"{_MEMORY_MIB}m",
        "spark.executor.extraClassPath": f"{PROJECT / Ours.jars}/*",
        "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.executorEnv.PYTHONPATH": str(PROJECT),
    }
    settings = {**Ours.settings(warehouse), **executors, **event_log.settings(log_folder)}
    settings["spark.eventLog.logBlockUpdates.enabled"] = "true"
    master = f"local-cluster[{EXECUTORS},1,{_MEMORY_MIB}]"
    spark = open_session(Ours.jars, settings, scratch, master)
    deadline = time.monotonic() + _START_SECONDS
    while spark.sparkContext.defaultParallelism < EXECUTORS:
        if time.monotonic() > deadline:
            raise RuntimeError(f"{EXECUTORS} executors had not started in {_START_SECONDS:.0f} s")
        time.sleep(0.2)
    return spark


def _spark_home(folder: Path) -> Path:
    """Make a home of links into pip's package: workers write into a folder of their home."""
    folder.mkdir()
    package = Path(pyspark.__file__).parent
    for name in ("bin", "jars", "python"):
        (folder / name).symlink_to(package / name)
    return folder
