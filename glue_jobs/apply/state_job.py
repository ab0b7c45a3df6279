"""The Spark job that updates states: of all chosen tables at once, or of one from Spark's rows."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from cdclake.errors import TaskFailed
from cdclake.iceberg.views import AppliedThrough
from cdclake.jobs.apply.pending_changes import PendingChanges, TooLarge
from cdclake.jobs.apply.pending_facts import PendingFacts
from cdclake.jobs.apply.state_task import (
    StateTarget,
    WrittenState,
    remove_old_indexes,
    update_state,
)
from cdclake.jobs.iceberg.data_file import Delta
from cdclake.jobs.iceberg.parquet_file import arrow_schema, completed
from cdclake.jobs.iceberg.task_failures import failure_of, failure_text, traceback_of
from cdclake.jobs.runtime.python_worker import reduce_task_overhead

log = logging.getLogger("cdclake.state")


Answer = WrittenState | TooLarge | TaskFailed  # of a task, about one table


@dataclass(frozen=True, slots=True)
class StateRequest:
    """One table's part of the job."""

    applied: AppliedThrough  # as of the target's snapshot
    target: StateTarget
    pending: PendingChanges


def run_state_job(spark: SparkSession, requests: Sequence[StateRequest]) -> dict[str, Answer]:
    """Write the files of all requested states, by as many tasks as there are cores.

    Returns by table what was written, or why nothing was. Nothing is committed.
    """
    if not requests:
        return {}
    cores = spark.sparkContext.defaultParallelism
    shares = _divided(requests, min(cores, len(requests)))
    tasks = spark.sparkContext.parallelize(shares, len(shares))
    return {name: _parse(text) for name, text in tasks.flatMap(_update_all).collect()}


def update_by_rows(changes: DataFrame, target: StateTarget, schema: str) -> WrittenState:
    """Write one state's files from rows that Spark has; `schema` is the changelog's in JSON."""
    task = _RowsTask(target, schema)
    [row] = changes.coalesce(1).mapInArrow(task, "written string").collect()
    written = _parse(row["written"])
    if isinstance(written, TaskFailed):
        raise written
    assert isinstance(written, WrittenState)  # it has read no files
    return written


def _divided(requests: Sequence[StateRequest], shares: int) -> list[list[StateRequest]]:
    """Divide the requests so that the shares have about equally many bytes."""
    divided: list[list[StateRequest]] = [[] for _ in range(shares)]
    sizes = [0] * shares
    for request in sorted(requests, key=lambda each: -each.pending.size):
        least = sizes.index(min(sizes))
        divided[least].append(request)
        sizes[least] += request.pending.size + 1
    return divided


def _update_all(share: Sequence[StateRequest]) -> list[tuple[str, str]]:
    reduce_task_overhead()
    updated = [(each.target.table.name, _guarded(partial(_update, each))) for each in share]
    remove_old_indexes()
    return updated


def _update(request: StateRequest) -> WrittenState | TooLarge:
    changes = request.pending.read()
    return changes if isinstance(changes, TooLarge) else update_state(request.target, changes)


def _guarded(work: Callable[[], WrittenState | TooLarge]) -> str:
    """Return the work's result or error as JSON, so that a failure affects one table only."""
    try:
        done = work()
        return json.dumps({"written": asdict(done) if isinstance(done, WrittenState) else None})
    except Exception as error:
        return json.dumps({"failed": failure_text(error)})


def _parse(text: str) -> Answer:
    raw = json.loads(text)
    if "failed" in raw:
        log.error("a state could not be updated: %s", traceback_of(raw["failed"]))
        return failure_of(raw["failed"])
    written = raw["written"]
    if written is None:
        return TooLarge()
    facts, delta = PendingFacts.from_raw(written["facts"]), Delta(**written["delta"])
    return WrittenState(facts=facts, carried=written["carried"], delta=delta)


@dataclass(frozen=True, slots=True)
class _RowsTask:
    """Function for `mapInArrow` over one partition of changelog rows."""

    target: StateTarget
    schema: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reduce_task_overhead()
        schema = arrow_schema(self.schema)
        parts = [completed(pa.Table.from_batches([batch]), schema) for batch in batches]
        changes = pa.concat_tables([schema.empty_table(), *parts])
        text = _guarded(lambda: update_state(self.target, changes))
        yield pa.RecordBatch.from_pydict({"written": [text]})
