"""N8e: a changelog and a state with many earlier commits: all of them kept, or thinned.

Thinned is what the stream's own maintenance leaves of them. A table that another tool maintains may
have all of them.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from pyspark.sql import DataFrame

from benchmarks.comparison import Arena
from benchmarks.dataset import DataSet
from benchmarks.expected import differences
from benchmarks.long_log import add_commits
from benchmarks.metering import metered
from benchmarks.orders import ORDERS
from benchmarks.ours import Ours
from benchmarks.session import open_session
from benchmarks.sizes import Size
from benchmarks.steps import Steps
from benchmarks.storage import in_folder
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.jvm.java import each
from cdclake.jobs.maintenance.snapshot_expiration import remove_old_snapshots

_TABLES = (ORDERS.changes, ORDERS.name)


def measure_commits(size: Size, work: Path, steps: Steps) -> dict[str, Any]:
    """N8e: a batch after none, after a day's and after two months' commits, two minutes apart."""
    day, months = size.scale.commits
    subjects = ((0, False), (day, False), (months, False), (months, True))
    runs = [
        steps.take(
            f"{commits}, thinned: {is_thinned}", partial(_run, size, work, commits, is_thinned)
        )
        for commits, is_thinned in subjects
    ]
    ours = {f"cpu_seconds_after_{_named(run)}": run["cpu_seconds"] for run in runs}
    return {"ours": ours, "peers": {}, "target": {}, "met": True, "runs": runs}


def _named(run: Mapping[str, Any]) -> str:
    return f"{run['earlier_commits']}_commits{'_thinned' if run['snapshots'] == 'thinned' else ''}"


def _run(size: Size, work: Path, commits: int, is_thinned: bool) -> dict[str, Any]:
    data = DataSet(
        folder=work / "data", rows=size.rows // 10, changes=size.changes, batches=size.batches,
        warm_up=size.warm_up, keys="zipf",
    ).make()  # fmt: skip
    with Arena(work, in_folder).place("scale") as place:
        live_rows = place.folder / "live"
        question = {
            "base": str(data.base), "batches": [str(file) for file in data.batch_files],
            "commits": commits, "is_thinned": is_thinned, "live_rows": str(live_rows),
        }  # fmt: skip
        answer = place.ask("benchmarks.scale.commits", question)
        wrong = differences(data.base, data.batch_files, live_rows)
    if wrong is not None:
        raise RuntimeError(f"the state is wrong: {wrong}")
    figures = data.counted(answer.pop("batches"))
    median = {
        name: round(statistics.median(batch[name] for batch in figures), 3)
        for name in ("seconds", "cpu_seconds")
    }
    kept = "thinned" if is_thinned else "all kept"
    return {"earlier_commits": commits, "snapshots": kept, **median, **answer}


def take(
    *,
    warehouse: str,
    scratch: str,
    base: str,
    batches: Sequence[str],
    commits: int,
    is_thinned: bool,
    live_rows: str,
) -> Mapping[str, Any]:
    """Return the figures of each batch, and bytes of both tables' metadata after the last."""
    spark = open_session(Ours.jars, Ours.settings(warehouse), Path(scratch))
    try:
        ours = Ours(spark, warehouse)
        ours.load(spark.read.parquet(base))
        figures = [_applied(ours, spark.read.parquet(batches[0]))]
        for table in _TABLES:
            add_commits(ours.lake, table, commits)
        ours.forget()
        with metered() as thinning:
            for table in _TABLES if is_thinned else ():
                remove_old_snapshots(ours.lake, table, datetime.now(UTC))
        ours.forget()
        figures += [_applied(ours, spark.read.parquet(batch)) for batch in batches[1:]]
        ours.live_rows().write.parquet(live_rows)
        return {
            "batches": figures,
            "thinning_seconds": round(thinning.seconds, 1) if is_thinned else None,
            "kept_snapshots": sum(1 for _ in _snapshots(ours.lake)),
            "metadata_bytes": sum(_metadata_file(ours.lake, t).stat().st_size for t in _TABLES),
        }
    finally:
        spark.stop()


def _applied(ours: Ours, changes: DataFrame) -> Mapping[str, Any]:
    rows = changes.cache()
    rows.count()
    with metered() as meter:
        ours.apply(rows)
    rows.unpersist()
    return {"seconds": meter.seconds, "cpu_seconds": meter.cpu_seconds}


def _snapshots(lake: LakeTables) -> Iterator[Any]:
    """Yield the snapshots of both tables."""
    for table in _TABLES:
        yield from each(lake.load(table).snapshots())


def _metadata_file(lake: LakeTables, table: str) -> Path:
    location = lake.load(table).operations().current().metadataFileLocation()
    return Path(urlparse(str(location)).path)
