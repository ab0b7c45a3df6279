"""Bytes and CPU seconds of queries of `_current`, next to the same queries of the state.

By the shape of the query, the reader and the length of the tail that is not applied. All that a
reader does is counted: its look at metadata and at the tail, and planning. Bytes are those that its
process reads from files, so that other work on the machine does not change them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
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
from benchmarks.orders import COLUMNS, KEY, ORDERS
from benchmarks.ours import Ours
from benchmarks.session import open_session
from benchmarks.sizes import Size
from benchmarks.storage import in_folder
from benchmarks.upkeep import maintain
from cdclake.iceberg.dialect import DUCKDB, SPARK, Dialect
from cdclake.iceberg.views import applied_view
from cdclake.jobs.iceberg.lake_tables import LakeTables

READERS = ("spark", "duckdb")
SHAPES = ("count", "point", "range", "full scan")
_APPLIED = 10  # batches before the tail
_TAILS = {"empty": 0, "small": 1, "large": 50}  # batches
_WARM_UPS, _READS = 2, 3
_RANGE = 1000  # one of so many keys
Query = Callable[[str], str]  # from a relation


def measure_views(size: Size, work: Path) -> dict[str, Any]:
    """Return bytes and CPU seconds of each query, of `_current` and of the state."""
    load = psutil.getloadavg()[0]
    data = DataSet(
        folder=work / "data",
        rows=size.viewed,
        changes=size.viewed // 1000,
        batches=_APPLIED + max(_TAILS.values()),
        keys="uniform",
    ).make()
    with Arena(work, in_folder).place("views") as place:
        folders = {reader: place.folder / f"live-{reader}" for reader in READERS}
        question = {
            "base": str(data.base),
            "batches": [str(file) for file in data.batch_files],
            "rows": size.viewed,
            "live_rows": {reader: str(folder) for reader, folder in folders.items()},
        }
        runs = place.ask("benchmarks.view_costs", question)
        wrong = {r: differences(data.base, data.batch_files, folders[r]) for r in READERS}
    return {
        "rows": size.viewed,
        "load_before": round(load, 1),
        "shared_machine": load > 1,  # other work ran: no times are taken
        "tail_events": {tail: n * data.changes for tail, n in _TAILS.items()},
        "runs": [{**run, "wrong": wrong[run["reader"]]} for run in runs],
    }


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
        ours.load(spark.read.parquet(base))
        ours.apply(spark.read.parquet(*batches[:_APPLIED]))
        maintain(ours.lake)
        runs: list[Mapping[str, Any]] = []
        states: dict[str, Mapping[str, Any]] = {}
        reached = _APPLIED
        for tail, length in _TAILS.items():
            until = _APPLIED + length
            if until > reached:
                ours.append(spark.read.parquet(*batches[reached:until]))
            reached = until
            for reader in READERS:
                found = _costs(ours.lake, reader, rows, is_view=True)
                if reader not in states:  # after the view, when Java has compiled the most
                    states[reader] = _costs(ours.lake, reader, rows, is_view=False)
                runs += _runs(reader, tail, found, states[reader])
        write_by_spark(ours.lake, live_rows["spark"])
        write_by_duckdb(ours.lake, live_rows["duckdb"])
        return runs
    finally:
        spark.stop()


def _runs(
    reader: str, tail: str, view: Mapping[str, Any], state: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    for shape in SHAPES:
        yield {
            "reader": reader,
            "tail": tail,
            "shape": shape,
            "view": view[shape],
            "state": state[shape],
        }


def _costs(
    lake: LakeTables, reader: str, rows: int, *, is_view: bool
) -> dict[str, Mapping[str, float]]:
    """Return the figures of each shape."""
    queries = _queries(rows)
    if reader == "spark":
        [java] = [child for child in psutil.Process().children() if "java" in child.name()]
        return {
            shape: _averaged(java, partial(_ask_spark, lake, query, is_view=is_view))
            for shape, query in queries.items()
        }
    with iceberg_session() as duck:
        duck.execute("SET enable_external_file_cache = false")  # each query reads for itself
        return {
            shape: _averaged(psutil.Process(), partial(_ask_duckdb, duck, lake, q, is_view=is_view))
            for shape, q in queries.items()
        }


def _queries(rows: int) -> dict[str, Query]:
    """Return the query of each shape, which both readers understand."""
    first = rows // 2
    last = first + rows // _RANGE - 1
    return {
        "count": lambda relation: f"SELECT count(*) FROM {relation}",
        "point": lambda relation: f"SELECT * FROM {relation} WHERE {KEY} = {first}",
        "range": lambda r: f"SELECT * FROM {r} WHERE {KEY} BETWEEN {first} AND {last}",
        "full scan": lambda relation: f"SELECT * FROM {relation}",
    }


def _ask_spark(lake: LakeTables, query: Query, *, is_view: bool) -> None:
    state = _live(lake.qualified(ORDERS.name), SPARK)
    text = query(f"({spark_view(lake) if is_view else state})")
    lake.spark.sql(text).write.format("noop").mode("overwrite").save()


def _ask_duckdb(
    duck: duckdb.DuckDBPyConnection, lake: LakeTables, query: Query, *, is_view: bool
) -> None:
    state = _live(scan(lake, ORDERS.name), DUCKDB)
    text = query(f"({duckdb_view(duck, lake) if is_view else state})")
    if text.startswith("SELECT *"):  # not as Python's objects, which would cost more than reading
        sums = ", ".join(f"sum(hash({DUCKDB.name(column)})::HUGEINT)" for column in COLUMNS)
        text = f"SELECT {sums} FROM ({text})"
    duck.execute(text).fetchall()


def _live(state: str, dialect: Dialect) -> str:
    return applied_view(ORDERS, state=state, dialect=dialect)


def _averaged(process: psutil.Process, ask: Callable[[], None]) -> Mapping[str, float]:
    """Return what one reading takes on average, once caches and compilers are warm."""
    for _ in range(_WARM_UPS):
        ask()
    before = _spent(process)
    for _ in range(_READS):
        ask()
    cpu, read = (after - then for after, then in zip(_spent(process), before, strict=True))
    return {"cpu_seconds": round(cpu / _READS, 3), "bytes": round(read / _READS)}


def _spent(process: psutil.Process) -> tuple[float, int]:
    """Return CPU seconds and bytes read so far, cached by the system or not."""
    times = process.cpu_times()
    return times.user + times.system, process.io_counters().read_chars
