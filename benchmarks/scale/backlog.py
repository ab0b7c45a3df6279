"""N8c: a backlog of one table, which the stream reads as fast as it can."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.dataset import DataSet
from benchmarks.ours import Ours
from benchmarks.results import meets_all
from benchmarks.scale.fed_stream import fed_stream
from benchmarks.session import CORES, open_session
from benchmarks.sizes import Size
from benchmarks.steps import Steps
from benchmarks.stream_batches import appended, plan_of, stream_records
from cdclake import naming
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp, state_stamp
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.stream.streaming_query import MAX_OFFSETS_PER_CORE
from cdclake.plan import Plan

TARGET: Mapping[str, float] = {"events_per_second": 50_000.0}
_FILES = 10  # of the backlog


def measure_backlog(size: Size, work: Path, steps: Steps) -> dict[str, Any]:
    """N8c: from the first batch to the last, Java's first minutes included."""
    run = steps.take("backlog", partial(_run, size, work))
    ours = {name: run[name] for name in ("events_per_second", "events_per_cpu_second")}
    met = meets_all(ours, TARGET)
    return {"ours": ours, "peers": {}, "target": TARGET, "met": met, "runs": [run]}


def _run(size: Size, work: Path) -> Any:
    data = DataSet(
        folder=work / "data", rows=size.rows, changes=size.scale.backlog // _FILES, batches=_FILES,
        keys="zipf",
    ).make()  # fmt: skip
    with fed_stream(work, plan_of(1, "each_batch")) as (place, brokers):
        question = {"batches": [str(file) for file in data.batch_files], "brokers": brokers}
        return place.ask("benchmarks.scale.backlog", question)


def take(
    *, warehouse: str, scratch: str, batches: Sequence[str], brokers: dict[str, str]
) -> Mapping[str, Any]:
    """Return the figures of the whole backlog; AssertionError as of `stream_records`."""
    plan = plan_of(1, "each_batch")
    spark = open_session(Ours.jars, Ours.settings(warehouse), Path(scratch))
    try:
        changes = MAX_OFFSETS_PER_CORE * CORES
        taken = stream_records(spark, plan, batches, brokers, scratch, changes)
        events = appended(spark, plan)
        seconds, cpu = (sum(each[name] for each in taken) for name in ("seconds", "cpu_seconds"))
        return {
            "events": events,
            "batches": len(taken),
            "seconds": round(seconds, 1),
            "cpu_seconds": round(cpu, 1),
            "events_per_second": round(events / seconds),
            "events_per_cpu_second": round(events / cpu),
            "unapplied_events": _unapplied(LakeTables(spark, plan.lake_database), plan),
        }
    finally:
        spark.stop()


def _unapplied(lake: LakeTables, plan: Plan) -> int:
    """Return the number of the changelog's rows that the state lacks in the end."""
    [table] = plan.tables
    changes, state = lake.stamped(table.changes).stamp, lake.stamped(table.name).stamp
    assert changes is not None
    through = ChangesStamp.from_json(changes).ingested_through
    applied = state_stamp(state).ingested if state else 0
    if applied == through:
        return 0
    later = f"unix_micros({naming.INGESTED_AT}) > {applied}"
    return lake.read(table.changes).where(later).count()
