"""N8b: a state of thousands of data files: batches of scattered keys, and its compaction.

Each file has other rows, as in a state that is not compacted or has many partitions.
Tables are in the local S3 and Glue, which count the requests and do not wait.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.dataset import DataSet
from benchmarks.history import Mix
from benchmarks.orders import ORDERS, PLAN
from benchmarks.ours import Ours
from benchmarks.scale.state_batches import apply_batch, checked_answer, figures_of
from benchmarks.session import open_session
from benchmarks.sizes import Size
from benchmarks.steps import Steps
from benchmarks.storage import counted
from cdclake.jobs.maintenance.actions import MaintainedTable, compact

_BATCHES = 6  # the last one after the compaction
_FIRST, _NEXT = "the first batch", "a batch after three others"
_COMPACTION, _AFTER = "compaction", "a batch after the compaction"
_SCATTERED = Mix(inserts=0, updates=95)


def measure_files(size: Size, work: Path, steps: Steps) -> dict[str, Any]:
    """N8b: the same rows in few and in many files."""
    runs = [
        run
        for files in size.scale.files
        for run in steps.take(f"{files} files", partial(_runs, size, work, files))
    ]
    ours = {
        f"{figure}_in_{run['files']}_files": run[figure]
        for run in runs
        if run["of"] == _NEXT
        for figure in ("seconds", "cpu_seconds")
    }
    return {"ours": ours, "peers": {}, "target": {}, "met": None, "runs": runs}


def _runs(size: Size, work: Path, files: int) -> list[dict[str, Any]]:
    data = DataSet(
        folder=work / "data", rows=size.rows, changes=size.scale.scattered, batches=_BATCHES,
        keys="uniform", mix=_SCATTERED,
    ).make()  # fmt: skip
    figures = checked_answer("benchmarks.scale.files", data, work, counted, files=files)
    about = {"files": files, "rows": size.rows, "keys": size.scale.scattered}
    return [{**about, "of": act, **found} for act, found in figures.items()]


def take(
    *,
    warehouse: str,
    scratch: str,
    base: str,
    batches: Sequence[str],
    files: int,
    live_rows: str,
) -> Mapping[str, Any]:
    """Return the figures of each act; the rows in the end are written to `live_rows`."""
    spark = open_session(Ours.jars, Ours.settings(warehouse), Path(scratch))
    try:
        ours = Ours(spark, warehouse)
        ours.load(spark.read.parquet(base).repartition(files))

        def batch(number: int) -> Mapping[str, Any]:
            return apply_batch(ours, spark.read.parquet(batches[number]))

        figures = {_FIRST: batch(0)}
        figures[_NEXT] = _median([batch(number) for number in range(1, _BATCHES - 1)][1:])
        figures[_COMPACTION] = figures_of(lambda: _compact(ours))
        figures[_AFTER] = batch(_BATCHES - 1)
        ours.live_rows().write.parquet(live_rows)
        return figures
    finally:
        spark.stop()


def _compact(ours: Ours) -> None:
    upkeep = MaintainedTable(
        ours.lake, ORDERS, ORDERS.name, datetime.now(UTC), timedelta(days=PLAN.history_days)
    )
    compact(upkeep)
    ours.forget()


def _median(figures: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return {name: statistics.median(each[name] for each in figures) for name in figures[0]}
