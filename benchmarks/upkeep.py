"""P7 and P8: what a hundred batches leave to a reader, and what maintenance costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.comparison import Arena
from benchmarks.contenders import OURS
from benchmarks.current import (
    read_by_duckdb,
    read_by_spark,
    write_by_duckdb,
    write_by_spark,
)
from benchmarks.dataset import DataSet
from benchmarks.expected import differences
from benchmarks.history import Keys
from benchmarks.metering import metered
from benchmarks.orders import ORDERS, PLAN
from benchmarks.ours import Ours
from benchmarks.results import Bound, Measure, Run, worst_subject
from benchmarks.session import open_session
from benchmarks.sizes import Size
from benchmarks.storage import in_folder
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.maintenance.actions import ACTIONS, MaintainedTable

COMPACTED, APPLYING = "just_compacted", "applying"
_READS = 3
_MAINTENANCE = "maintenance, CPU seconds from one to the next"
_READERS = {"spark": read_by_spark, "duckdb": read_by_duckdb}
# Uniform keys delete a little of every file, and what that costs comes late and at once.
_MAINTAINED: Mapping[Keys, int] = {"zipf": 1, "uniform": 10}


def measure_reading(size: Size, work: Path) -> Measure:
    """P7: `_current` beside the same table just compacted, and maintenance beside applying."""
    runs = [run for keys in size.keys for run in _reading_runs(size, keys, work)]
    return worst_subject(runs, OURS, reading_targets)


def measure_maintenance(size: Size, work: Path) -> Measure:
    """P8: each maintenance after a twentieth of the batches that P7 brings in.

    Of Zipf keys three, one by one; of uniform keys three times the sum of ten.
    """
    small = f"{OURS}, {size.rows // 10:,} rows"
    sized = {small: replace(size, rows=size.rows // 10), OURS: size}
    runs = [
        _maintenance_run(of_rows, keys, name, work)
        for keys in size.keys
        for name, of_rows in sized.items()
    ]
    return worst_subject(runs, OURS, lambda _: {small: Bound("<=", 1.3)})


def reading_targets(subject: str) -> Mapping[str, Bound]:
    """Return the bounds of a subject of P7."""
    if subject.startswith(_MAINTENANCE):
        return {APPLYING: Bound("<=", 0.2)}
    return {COMPACTED: Bound("<=", 1.3)}


def _reading_runs(size: Size, keys: Keys, work: Path) -> list[Run]:
    every = max(1, size.history * 3 // 10)
    figures, wrong = _lived(size, keys, work, size.history, every, readers=tuple(_READERS))
    runs = []
    for reader in _READERS:
        about = {"subject": f"reading by {reader}, {keys} keys", "rows": size.rows}
        runs.append(Run(OURS, about, wrong, figures[reader]))
        runs.append(Run(COMPACTED, about, wrong, figures[f"{reader} compacted"]))
    about = {"subject": f"{_MAINTENANCE}, {keys} keys", "rows": size.rows}
    maintaining, applying = figures["maintaining"], figures["applying"]
    between = _summed_by(every, applying[: every * len(maintaining)])
    runs.append(Run(OURS, about, wrong, [_by_cpu(once) for once in maintaining]))
    runs.append(Run(APPLYING, about, wrong, [_by_cpu(batches) for batches in between]))
    return runs


def _maintenance_run(size: Size, keys: Keys, name: str, work: Path) -> Run:
    every, together = max(1, size.history // 20), _MAINTAINED[keys]
    figures, wrong = _lived(size, keys, work, 3 * together * every, every, readers=())
    changes = size.changes * every * together
    about = {"subject": f"maintenance, {keys} keys", "rows": size.rows, "changes": changes}
    return Run(name, about, wrong, _summed_by(together, figures["maintaining"]))


def _lived(
    size: Size, keys: Keys, work: Path, batches: int, every: int, *, readers: tuple[str, ...]
) -> tuple[dict[str, list[Mapping[str, Any]]], str | None]:
    data = DataSet(
        folder=work / "data", rows=size.rows, changes=size.changes, batches=batches, keys=keys
    ).make()
    with Arena(work, in_folder).place("upkeep") as place:
        live_rows = place.folder / "live"
        question = {
            "base": str(data.base),
            "batches": [str(file) for file in data.batch_files],
            "every": every,
            "live_rows": str(live_rows),
            "readers": readers,
        }
        figures = place.ask("benchmarks.upkeep", question)
        found = (live_rows.with_name(f"live-{reader}") for reader in _READERS)
        wrongs = [differences(data.base, data.batch_files, folder) for folder in found]
    return figures, next((wrong for wrong in wrongs if wrong is not None), None)


def _summed_by(length: int, figures: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Each stretch of so many as one."""
    return [_summed(figures[n : n + length]) for n in range(0, len(figures), length)]


def _summed(figures: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """What several acts took together: sums, and the highest memory."""
    by_kind: Counter[str] = Counter()
    for each in figures:
        by_kind.update(each["cpu_by_kind"])
    return {
        "seconds": sum(each["seconds"] for each in figures),
        "cpu_seconds": sum(each["cpu_seconds"] for each in figures),
        "peak_mib": max(each["peak_mib"] for each in figures),
        "cpu_by_kind": dict(by_kind),
    }


def _by_cpu(figures: Mapping[str, Any]) -> Mapping[str, Any]:
    """The CPU under the name by which figures are compared."""
    return {**figures, "seconds": figures["cpu_seconds"]}


def take(
    *,
    warehouse: str,
    scratch: str,
    base: str,
    batches: Sequence[str],
    every: int,
    live_rows: str,
    readers: Sequence[str],
) -> dict[str, list[Mapping[str, Any]]]:
    """Figures of applying, of maintaining after `every` so many batches, and of each of `readers`.

    These read after the last batch, and once more when everything is compacted.
    """
    spark = open_session(Ours.jars, Ours.settings(warehouse), Path(scratch))
    try:
        ours = Ours(spark, warehouse)
        ours.load(spark.read.parquet(base))
        maintain(ours.lake)  # packing what the load has written is the load's, once
        figures: dict[str, list[Mapping[str, Any]]] = {"applying": [], "maintaining": []}
        for number, batch in enumerate(batches, start=1):
            figures["applying"].append(_bring_in(spark, ours, batch))
            if number % every == 0:
                figures["maintaining"].append(_timed(lambda: maintain(ours.lake)))
        write_by_spark(ours.lake, f"{live_rows}-spark")
        write_by_duckdb(ours.lake, f"{live_rows}-duckdb")
        figures |= {name: _reads(ours.lake, _READERS[name]) for name in readers}
        if readers:
            _compact_whole(ours.lake)
        compacted = {f"{name} compacted": _reads(ours.lake, _READERS[name]) for name in readers}
        return figures | compacted
    finally:
        spark.stop()


def maintain(lake: LakeTables) -> None:
    """Every action of the maintenance job, on the log and on the state."""
    now, history = datetime.now(UTC), timedelta(days=PLAN.history_days)
    for name in (ORDERS.changes, ORDERS.name):
        for action in ACTIONS.values():
            action(MaintainedTable(lake, ORDERS, name, now, history))


def _bring_in(spark: SparkSession, ours: Ours, batch: str) -> Mapping[str, Any]:
    changes = spark.read.parquet(batch).cache()
    changes.count()
    moment = ours.append(changes)
    figures = _timed(lambda: ours.apply_pending(moment))
    changes.unpersist()
    return figures


def _reads(lake: LakeTables, read: Callable[[LakeTables], None]) -> list[Mapping[str, Any]]:
    read(lake)  # the first one is slower for reasons of its own
    return [_timed(lambda: read(lake)) for _ in range(_READS)]


def _compact_whole(lake: LakeTables) -> None:
    now = datetime.now(UTC)
    for name in (ORDERS.changes, ORDERS.name):
        upkeep = MaintainedTable(lake, ORDERS, name, now, timedelta())
        upkeep.call("rewrite_data_files", options="map('rewrite-all', 'true')")


def _timed(work: Callable[[], object]) -> Mapping[str, Any]:
    with metered() as meter:
        work()
    return meter.figures()
