"""N8e: a changelog and a state with many earlier commits: all of them kept, or thinned.

Thinned is what the stream's own maintenance leaves of them. A table that another tool maintains may
have all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from benchmarks.dataset import DataSet
from benchmarks.long_log import add_commits
from benchmarks.metering import medians
from benchmarks.orders import ORDERS
from benchmarks.ours import Ours
from benchmarks.scale.state_batches import apply_batch, checked_answer, figures_of
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
    return {"ours": ours, "peers": {}, "target": {}, "met": None, "runs": runs}


def _named(run: Mapping[str, Any]) -> str:
    return f"{run['earlier_commits']}_commits{'_thinned' if run['snapshots'] == 'thinned' else ''}"


def _run(size: Size, work: Path, commits: int, is_thinned: bool) -> dict[str, Any]:
    data = DataSet(
        folder=work / "data", rows=size.rows // 10, changes=size.changes, batches=size.batches,
        warm_up=size.warm_up, keys="zipf",
    ).make()  # fmt: skip
    answer = checked_answer(
        "benchmarks.scale.commits", data, work, in_folder, commits=commits, is_thinned=is_thinned
    )
    median = medians(data.counted(answer.pop("batches")))
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
        figures = [apply_batch(ours, spark.read.parquet(batches[0]))]
        for table in _TABLES:
            add_commits(ours.lake, table, commits)
        ours.forget()
        thinning = figures_of(lambda: _thin(ours.lake)) if is_thinned else None
        ours.forget()
        figures += [apply_batch(ours, spark.read.parquet(batch)) for batch in batches[1:]]
        ours.live_rows().write.parquet(live_rows)
        return {
            "batches": figures,
            "thinning_seconds": thinning and thinning["seconds"],
            "kept_snapshots": sum(1 for _ in _snapshots(ours.lake)),
            "metadata_bytes": sum(_metadata_file(ours.lake, t).stat().st_size for t in _TABLES),
        }
    finally:
        spark.stop()


def _thin(lake: LakeTables) -> None:
    for table in _TABLES:
        remove_old_snapshots(lake, table, datetime.now(UTC))


def _snapshots(lake: LakeTables) -> Iterator[Any]:
    """Yield the snapshots of both tables."""
    for table in _TABLES:
        yield from each(lake.load(table).snapshots())


def _metadata_file(lake: LakeTables, table: str) -> Path:
    location = lake.load(table).operations().current().metadataFileLocation()
    return Path(urlparse(str(location)).path)
