"""Queries of a view and of its state, over a tail that grows, and what a query takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import psutil
from pyspark.sql import SparkSession

from benchmarks.orders import COLUMNS, KEY
from benchmarks.ours import Ours
from benchmarks.upkeep import maintain

SHAPES = ("count", "point", "range", "full scan")
APPLIED = 10  # batches before the tail
TAILS = {"empty": 0, "small": 1, "large": 50}  # batches
_RANGE = 1000  # one of so many keys
MOST_OF_STATE = 1.5  # times the state's cost
# Queries that this holds for, by their tails.
_BOUNDED = {"count": ("empty",), "point": tuple(TAILS), "range": tuple(TAILS)}
Query = Callable[[str], str]  # from a relation


def queries(rows: int, of_all: str = "*") -> dict[str, Query]:
    """Return the query of each shape.

    `of_all` is chosen of the rows, instead of every column: a million rows as Python's objects
    would cost an engine's client more than reading them.
    """
    first = rows // 2
    last = first + rows // _RANGE - 1
    return {
        "count": lambda relation: f"SELECT count(*) FROM {relation}",
        "point": lambda relation: f"SELECT {of_all} FROM {relation} WHERE {KEY} = {first}",
        "range": lambda r: f"SELECT {of_all} FROM {r} WHERE {KEY} BETWEEN {first} AND {last}",
        "full scan": lambda relation: f"SELECT {of_all} FROM {relation}",
    }


def of_each_column(aggregate: str) -> str:
    """Return the aggregates of every column; `{}` in `aggregate` is the column's name."""
    return ", ".join(aggregate.format(column) for column in COLUMNS)


def growing_tails(
    spark: SparkSession, ours: Ours, base: str, batches: Sequence[str]
) -> Iterator[str]:
    """Load and maintain the table, then yield the name of each tail while it is there."""
    ours.load(spark.read.parquet(base))
    ours.apply(spark.read.parquet(*batches[:APPLIED]))
    maintain(ours.lake)
    reached = APPLIED
    for tail, length in TAILS.items():
        until = APPLIED + length
        if until > reached:
            ours.append(spark.read.parquet(*batches[reached:until]))
        reached = until
        yield tail


def runs_of(
    reader: str, tail: str, view: Mapping[str, Any], state: Mapping[str, Any]
) -> Iterator[Mapping[str, Any]]:
    """Yield the figures of each shape, of the view and of the state."""
    for shape in SHAPES:
        yield {
            "reader": reader,
            "tail": tail,
            "shape": shape,
            "view": view[shape],
            "state": state[shape],
        }


def view_targets(runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the targets of the view's bytes and CPU seconds, with what became of each."""
    found = []
    for run in runs:
        if run["tail"] not in _BOUNDED.get(run["shape"], ()):
            continue
        for what in ("bytes", "cpu_seconds"):
            ratio = run["view"][what] / run["state"][what]
            found.append(
                {
                    **{of: run[of] for of in ("reader", "tail", "shape")},
                    "of": what,
                    "ratio": round(ratio, 3),
                    "target": f"<= {MOST_OF_STATE:g}x",
                    "met": ratio <= MOST_OF_STATE,
                }
            )
    return found


def averaged(
    process: psutil.Process, ask: Callable[[], int | None], *, warm_ups: int = 10, reads: int = 5
) -> Mapping[str, float]:
    """Return what one query takes on average, once caches and compilers are warm.

    Java's compilers are busy for some seconds with the first queries of a session.

    `ask` sends the query; the bytes are the number that it returns, or, if it returns None, those
    that the process has read from files, cached by the system or not.
    """
    for _ in range(warm_ups):
        ask()
    cpu, read = _spent(process)
    counted = [ask() for _ in range(reads)]
    cpu_after, read_after = _spent(process)
    known = [number for number in counted if number is not None]
    total = sum(known) if known else read_after - read
    return {
        "cpu_seconds": round((cpu_after - cpu) / reads, 3),
        "bytes": round(total / reads),
    }


def _spent(process: psutil.Process) -> tuple[float, int]:
    """Return CPU seconds and bytes read so far."""
    times = process.cpu_times()
    return times.user + times.system, process.io_counters().read_chars
