"""N8b: a state of thousands of data files: batches of scattered keys, and its compaction.

Each file has other rows, as in a state that is not compacted or has many partitions.
Tables are in the local S3 and Glue, which count the requests and do not wait.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.comparison import Arena
from benchmarks.dataset import DataSet
from benchmarks.expected import differences
from benchmarks.history import Mix
from benchmarks.metering import metered
from benchmarks.orders import ORDERS, PLAN
from benchmarks.ours import Ours
from benchmarks.requests import requests_so_far
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
    return {"ours": ours, "peers": {}, "target": {}, "met": True, "runs": runs}


def _runs(size: Size, work: Path, files: int) -> list[dict[str, Any]]:
    data = DataSet(
        folder=work / "data", rows=size.rows, changes=size.scale.scattered, batches=_BATCHES,
        keys="uniform", mix=_SCATTERED,
    ).make()  # fmt: skip
    with Arena(work, counted).place("scale") as place:
        live_rows = place.folder / "live"
        question = {
            "base": str(data.base), "batches": [str(file) for file in data.batch_files],
            "files": files, "live_rows": str(live_rows),
        }  # fmt: skip
        figures = place.ask("benchmarks.scale.files", question)
        wrong = differences(data.base, data.batch_files, live_rows)
    if wrong is not None:
        raise RuntimeError(f"the state is wrong: {wrong}")
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
            changes = spark.read.parquet(batches[number]).cache()
            changes.count()
            found = _metered(lambda: ours.apply(changes))
            changes.unpersist()
            return found

        figures = {_FIRST: batch(0)}
        figures[_NEXT] = _median([batch(number) for number in range(1, _BATCHES - 1)][1:])
        figures[_COMPACTION] = _metered(lambda: _compact(ours))
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


def _metered(act: Callable[[], object]) -> Mapping[str, Any]:
    before = requests_so_far()
    with metered() as meter:
        act()
    requests = requests_so_far() - before
    return {
        "seconds": round(meter.seconds, 2),
        "cpu_seconds": round(meter.cpu_seconds, 2),
        "s3_requests": requests.s3,
        "glue_requests": requests.glue,
    }


def _median(figures: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    return {name: statistics.median(each[name] for each in figures) for name in figures[0]}
