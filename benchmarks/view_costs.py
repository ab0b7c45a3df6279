"""Bytes and CPU seconds of queries of `_current`, next to the same queries of the state.

By the shape of the query, the reader and the length of the tail that is not applied. All that a
reader does is counted: its look at metadata and at the tail, and planning. Bytes are those that its
process reads from files, so that other work on the machine does not change them; those of Trino are
counted by `benchmarks.trino_costs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import psutil

from benchmarks.comparison import Arena
from benchmarks.current import (
    duckdb_view,
    iceberg_session,
    scan,
    spark_view,
    write_by_duckdb,
    write_by_spark,
)
from benchmarks.dataset import DataSet
from benchmarks.expected import differences
from benchmarks.orders import ORDERS
from benchmarks.ours import Ours
from benchmarks.session import open_session
from benchmarks.sizes import Size
from benchmarks.steps import Steps
from benchmarks.storage import counted, in_folder
from benchmarks.view_queries import (
    APPLIED,
    TAILS,
    Query,
    averaged,
    growing_tails,
    of_each_column,
    queries,
    runs_of,
    view_targets,
)
from cdclake.iceberg.dialect import DUCKDB, SPARK, Dialect
from cdclake.iceberg.views import applied_view
from cdclake.jobs.iceberg.lake_tables import LakeTables

_IN_FOLDER = ("spark", "duckdb")
READERS = (*_IN_FOLDER, "trino")


def measure_views(size: Size, work: Path, steps: Steps) -> dict[str, Any]:
    """Return bytes and CPU seconds of each query, of `_current` and of the state."""
    load = psutil.getloadavg()[0]
    data = DataSet(
        folder=work / "data",
        rows=size.viewed,
        changes=size.viewed // 1000,
        batches=APPLIED + max(TAILS.values()),
        keys="uniform",
    ).make()
    parts = {"benchmarks.view_costs": _IN_FOLDER, "benchmarks.trino_costs": ("trino",)}
    runs = [
        run
        for module, readers in parts.items()
        for run in steps.take(module, partial(_measured, data, work, module, readers))
    ]
    return {
        "rows": size.viewed,
        "load_before": round(load, 1),
        "shared_machine": load > 1,  # other work ran: no times are taken
        "tail_events": {tail: n * data.changes for tail, n in TAILS.items()},
        "targets": (targets := view_targets(runs)),
        "met": all(target["met"] for target in targets),
        "runs": runs,
    }


def _measured(
    data: DataSet, work: Path, module: str, readers: Sequence[str]
) -> list[Mapping[str, Any]]:
    storage = counted if "trino" in readers else in_folder
    with Arena(work, storage).place("views") as place:
        folders = {reader: place.folder / f"live-{reader}" for reader in readers}
        question = {
            "base": str(data.base),
            "batches": [str(file) for file in data.batch_files],
            "rows": data.rows,
            "live_rows": {reader: str(folder) for reader, folder in folders.items()},
        }
        runs = place.ask(module, question)
        wrong = {r: differences(data.base, data.batch_files, folders[r]) for r in readers}
    return [{**run, "wrong": wrong[run["reader"]]} for run in runs]


def take(
    *,
    warehouse: str,
    scratch: str,
    base: str,
    batches: Sequence[str],
    rows: int,
    live_rows: Mapping[str, str],
) -> list[Mapping[str, Any]]:
    """Figures of each query while the tail grows, and the rows in the end by each reader."""
    spark = open_session(Ours.jars, Ours.settings(warehouse), Path(scratch))
    spark.conf.set("spark.sql.adaptive.enabled", "true")  # as in a session for queries
    try:
        ours = Ours(spark, warehouse)
        runs: list[Mapping[str, Any]] = []
        states: dict[str, Mapping[str, Any]] = {}
        for tail in growing_tails(spark, ours, base, batches):
            for reader in _IN_FOLDER:
                found = _costs(ours.lake, reader, rows, is_view=True)
                if reader not in states:  # after the view, when Java has compiled the most
                    states[reader] = _costs(ours.lake, reader, rows, is_view=False)
                runs += runs_of(reader, tail, found, states[reader])
        write_by_spark(ours.lake, live_rows["spark"])
        write_by_duckdb(ours.lake, live_rows["duckdb"])
        return runs
    finally:
        spark.stop()


def _costs(
    lake: LakeTables, reader: str, rows: int, *, is_view: bool
) -> dict[str, Mapping[str, float]]:
    """Return the figures of each shape."""
    if reader == "spark":
        [java] = [child for child in psutil.Process().children() if "java" in child.name()]
        return {
            shape: averaged(java, partial(_ask_spark, lake, query, is_view=is_view))
            for shape, query in queries(rows).items()
        }
    with iceberg_session() as duck:
        duck.execute("SET enable_external_file_cache = false")  # each query reads for itself
        summed = queries(rows, of_each_column("sum(hash({})::HUGEINT)"))
        return {
            shape: averaged(psutil.Process(), partial(_ask_duckdb, duck, lake, q, is_view=is_view))
            for shape, q in summed.items()
        }


def _ask_spark(lake: LakeTables, query: Query, *, is_view: bool) -> None:
    state = _live(lake.qualified(ORDERS.name), SPARK)
    text = query(f"({spark_view(lake) if is_view else state})")
    lake.spark.sql(text).write.format("noop").mode("overwrite").save()


def _ask_duckdb(
    duck: duckdb.DuckDBPyConnection, lake: LakeTables, query: Query, *, is_view: bool
) -> None:
    state = _live(scan(lake, ORDERS.name), DUCKDB)
    duck.execute(query(f"({duckdb_view(duck, lake) if is_view else state})")).fetchall()


def _live(state: str, dialect: Dialect) -> str:
    return applied_view(ORDERS, state=state, dialect=dialect)
