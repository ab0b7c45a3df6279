"""N1, N1a, N7, N7a, N8: micro-batches of one and of many tables, with states and changelogs only.

A real broker has the records of all batches; the product's own streaming query reads them. A
batch's CPU seconds are those of its process and all below it, from one call of `foreachBatch` to
the next, so that all that Spark does for a batch is in them. The broker is another process.

A table's cost and a change's cost follow from batches of different sizes.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.broker import running_broker
from benchmarks.comparison import Arena
from benchmarks.dataset import DataSet
from benchmarks.ours import Ours
from benchmarks.results import meets_all
from benchmarks.session import open_session
from benchmarks.sizes import Size
from benchmarks.storage import Storage, far_away, in_folder
from benchmarks.stream_batches import Apply, plan_of, stream_records

MANY, HUNDREDS = 20, 300
Target = Mapping[str, float]
LOG_COST: Target = {
    "us_per_change": 15.0, "seconds_per_table": 0.05, "changes_per_cpu_second": 60_000.0,
}  # fmt: skip
STATE_COST: Target = {
    "us_per_change": 25.0, "seconds_per_table": 0.12, "changes_per_cpu_second": 20_000.0,
}  # fmt: skip
LOG_REQUESTS: Target = {"requests_per_table": 9.0}
STATE_REQUESTS: Target = {"requests_per_table": 23.0}
BATCH_OF_HUNDREDS: Target = {"seconds_per_batch": 30.0}


@dataclass(frozen=True, slots=True)
class Fit:
    """CPU seconds of a batch, of each of its tables, and of each of its changes."""

    batch: float
    table: float
    change: float
    error: float = 0.0  # how far the formula is from a run's median at most

    def of(self, tables: int, changes: int) -> float:
        """Compute the CPU seconds of a batch by the formula."""
        return self.batch + self.table * tables + self.change * changes


def measure_changelog(size: Size, work: Path) -> dict[str, Any]:
    """N1a: the figures, the target, whether it is met, and every batch."""
    return judged_costs(_cost_runs(size, work, "scheduled"), LOG_COST)


def measure_states(size: Size, work: Path) -> dict[str, Any]:
    """N1: the same with the states, which each batch updates."""
    return judged_costs(_cost_runs(size, work, "each_batch"), STATE_COST)


def measure_changelog_requests(size: Size, work: Path) -> dict[str, Any]:
    """N7a: requests to S3 and Glue for each table and batch, 30 ms and 80 ms away."""
    return _judged_requests(size, work, "scheduled", LOG_REQUESTS)


def measure_state_requests(size: Size, work: Path) -> dict[str, Any]:
    """N7: the same with the states."""
    return _judged_requests(size, work, "each_batch", STATE_REQUESTS)


def measure_hundreds(size: Size, work: Path) -> dict[str, Any]:
    """N8: how long a batch of 300 tables takes with the states, and its CPU seconds."""
    run = _run(size, work, HUNDREDS, max(size.events // 10, HUNDREDS), "each_batch", in_folder)
    ours = {
        "seconds_per_batch": round(statistics.median(run["seconds"]), 2),
        "cpu_seconds_per_batch": round(statistics.median(run["cpu_seconds"]), 2),
    }
    met = meets_all(ours, BATCH_OF_HUNDREDS)
    return {"ours": ours, "peers": {}, "target": BATCH_OF_HUNDREDS, "met": met, "runs": [run]}


def _cost_runs(size: Size, work: Path, apply: Apply) -> list[dict[str, Any]]:
    few = max(size.events // 100, MANY)
    subjects = ((1, few), (1, size.events), (MANY, few), (MANY, size.events))
    return [_run(size, work, tables, changes, apply, in_folder) for tables, changes in subjects]


def _judged_requests(size: Size, work: Path, apply: Apply, target: Target) -> dict[str, Any]:
    run = _run(size, work, MANY, max(size.events // 100, MANY), apply, far_away)
    requests = [(s3 + glue) / MANY for s3, glue in zip(run["s3"], run["glue"], strict=True)]
    ours = {"requests_per_table": round(statistics.median(requests), 2)}
    met = meets_all(ours, target)
    return {"ours": ours, "peers": {}, "target": target, "met": met, "runs": [run]}


def _run(
    size: Size,
    work: Path,
    tables: int,
    changes: int,
    apply: Apply,
    storage: Callable[[Path], AbstractContextManager[Storage]],
) -> dict[str, Any]:
    data = DataSet(
        folder=work / "data", rows=size.rows, changes=changes, batches=size.batches,
        warm_up=size.warm_up, keys="zipf",
    ).make()  # fmt: skip
    plan = plan_of(tables, apply)
    with (
        Arena(work, storage).place("changelog") as place,
        running_broker(place.folder / "kafka") as broker,
    ):
        broker.create([*(table.topic for table in plan.tables), plan.heartbeat_rows_topic])
        question = {
            "batches": [str(file) for file in data.batch_files],
            "tables": tables,
            "changes": changes,
            "apply": apply,
            "brokers": broker.spark_options,
        }
        figures = data.counted(place.ask("benchmarks.changelog", question))
    compared = tables if apply == "each_batch" else 0
    whole: dict[str, Any] = {"tables": tables, "changes": changes, "compared_states": compared}
    return whole | {name: [batch[name] for batch in figures] for name in figures[0]}


def judged_costs(runs: Sequence[Mapping[str, Any]], target: Target) -> dict[str, Any]:
    """Compute the costs from the medians of four runs: few and many changes and tables."""
    median = {
        (run["tables"], run["changes"]): statistics.median(run["cpu_seconds"]) for run in runs
    }
    (few, much), (one, many) = (sorted({key[at] for key in median}) for at in (1, 0))
    ours = {
        "us_per_change": 1e6 * (median[one, much] - median[one, few]) / (much - few),
        "seconds_per_table": (median[many, few] - median[one, few]) / (many - one),
        "changes_per_cpu_second": much / median[one, much],
        "changes_per_cpu_second_of_many_tables": much / median[many, much],
    }
    met = meets_all(ours, target)
    shown = {name: round(value, 4) for name, value in ours.items()}
    return {"ours": shown, "peers": {}, "target": target, "met": met, "runs": list(runs)}


def fitted(runs: Sequence[Mapping[str, Any]]) -> Fit:
    """Fit the CPU seconds of a batch to the medians of those four runs, by least squares."""
    median = {
        (run["tables"], run["changes"]): statistics.median(run["cpu_seconds"]) for run in runs
    }
    (one, many), (few, much) = (sorted({key[at] for key in median}) for at in (0, 1))
    table = sum(median[many, n] - median[one, n] for n in (few, much)) / 2 / (many - one)
    change = sum(median[n, much] - median[n, few] for n in (one, many)) / 2 / (much - few)
    batch = sum(median.values()) / 4 - table * (one + many) / 2 - change * (few + much) / 2
    fit = Fit(batch, table, change)
    return replace(fit, error=max(abs(median[key] - fit.of(*key)) for key in median))


def take(
    *,
    warehouse: str,
    scratch: str,
    batches: Sequence[str],
    tables: int,
    changes: int,
    apply: Apply,
    brokers: dict[str, str],
) -> list[Mapping[str, Any]]:
    """Figures of each batch; AssertionError as of `stream_records`."""
    plan = plan_of(tables, apply)
    spark = open_session(Ours.jars, Ours.settings(warehouse), Path(scratch))
    try:
        return stream_records(spark, plan, batches, brokers, scratch, changes)
    finally:
        spark.stop()
