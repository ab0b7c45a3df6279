"""N8d: a table of 400 columns: CPU of a change and of a value, next to a table of nine columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.dataset import DataSet
from benchmarks.metering import medians
from benchmarks.orders import COLUMNS, ORDERS
from benchmarks.ours import Ours
from benchmarks.scale.fed_stream import fed_stream
from benchmarks.session import open_session
from benchmarks.sizes import Size
from benchmarks.steps import Steps
from benchmarks.stream_batches import plan_of, stream_records
from cdclake.plan import Column, Plan

NARROW, WIDE = len(COLUMNS), 400
# Types of the further columns in turn, and values as Debezium writes them.
_KINDS = (
    ("integer", "CAST(customer_id * {n} % 1000003 AS int)"),
    ("varchar(20)", "concat('text ', customer_id % {n})"),
    ("numeric(12,2)", "price"),
    ("timestamptz", "created_at"),
    ("boolean", "customer_id % {n} = 0"),
)


def measure_columns(size: Size, work: Path, steps: Steps) -> dict[str, Any]:
    """N8d: the cost of a change from batches of few and of many changes, with the states."""
    events = {NARROW: (size.events // 100, size.events), WIDE: size.scale.wide_events}
    runs = [
        steps.take(f"{columns} columns, {n} changes", partial(_run, size, work, columns, n))
        for columns, of in events.items()
        for n in of
    ]
    costs = {columns: _us_per_change(runs, columns) for columns in events}
    ours = {f"us_per_change_of_{columns}_columns": round(us, 2) for columns, us in costs.items()}
    ours |= {f"us_per_value_of_{c}_columns": round(us / c, 3) for c, us in costs.items()}
    return {"ours": ours, "peers": {}, "target": {}, "met": None, "runs": runs}


def _run(size: Size, work: Path, columns: int, changes: int) -> dict[str, Any]:
    data = DataSet(
        folder=work / "data", rows=size.rows, changes=changes, batches=size.batches,
        warm_up=size.warm_up, keys="zipf",
    ).make()  # fmt: skip
    with fed_stream(work, _plan(columns)) as (place, brokers):
        question = {
            "batches": [str(file) for file in data.batch_files],
            "columns": columns, "changes": changes, "brokers": brokers,
        }  # fmt: skip
        figures = data.counted(place.ask("benchmarks.scale.columns", question))
    return {"columns": columns, "changes": changes, **medians(figures)}


def _us_per_change(runs: Sequence[Mapping[str, Any]], columns: int) -> float:
    few, many = (run for run in runs if run["columns"] == columns)
    spent = many["cpu_seconds"] - few["cpu_seconds"]
    return float(1e6 * spent / (many["changes"] - few["changes"]))


def take(
    *,
    warehouse: str,
    scratch: str,
    batches: Sequence[str],
    columns: int,
    changes: int,
    brokers: dict[str, str],
) -> list[Mapping[str, Any]]:
    """Return the figures of each batch; AssertionError as of `stream_records`."""
    plan, added = _plan(columns), dict(_values(columns))
    spark = open_session(Ours.jars, Ours.settings(warehouse), Path(scratch))
    try:
        return stream_records(spark, plan, batches, brokers, scratch, changes, added=added)
    finally:
        spark.stop()


def _plan(columns: int) -> Plan:
    further = range(columns - NARROW)
    added = (Column(source=_name(n), name=_name(n), type=_KINDS[n % 5][0]) for n in further)
    return plan_of(1, "each_batch", replace(ORDERS, columns=(*ORDERS.columns, *added)))


def _values(columns: int) -> Iterator[tuple[str, str]]:
    for n in range(columns - NARROW):
        yield _name(n), _KINDS[n % 5][1].format(n=n + 2)


def _name(number: int) -> str:
    return f"value_{number:03}"
