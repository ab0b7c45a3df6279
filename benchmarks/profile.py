"""`python -m benchmarks.profile`: where the seconds of one batch go, of ours and of its peer.

Of measures whose targets are missed, into benchmarks/results/profile.json; not while they are
measured, since a log of events costs time.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.append import BARE as BARE_APPEND
from benchmarks.append import append_bare, create_bare_table, inserts
from benchmarks.apply import changes
from benchmarks.comparison import Arena
from benchmarks.contenders import OURS
from benchmarks.decode import BARE as BARE_PARSING
from benchmarks.decode import ROWS, decode_in_tasks, evaluate, events, parsed
from benchmarks.event_log import EventLog, Moments, idle_seconds, settings
from benchmarks.kafka_records import records_of
from benchmarks.machine import machine, versions
from benchmarks.ours import Ours
from benchmarks.run import WORK
from benchmarks.session import PROJECT, open_session
from benchmarks.sizes import SIZES
from benchmarks.storage import in_folder
from cdclake import naming
from cdclake.interrupts import ending_in_order
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.iceberg.table_handle import TableHandle

PROFILE = PROJECT / "benchmarks" / "results" / "profile.json"
Acts = Mapping[str, Callable[[DataFrame], object]]  # what is done with a batch, one after the other


def main() -> int:
    """0 when the profile is written."""
    size = SIZES["full"]
    arena = Arena(WORK / "profile", in_folder)
    profiles = {}
    work = WORK / "full"
    data_of = {
        "P1": changes(size, "uniform", work),
        "P3": inserts(size, work),
        "P4": events(size, work),
    }
    for measure, data in data_of.items():
        sys.stdout.write(f"{measure} ...\n")
        with ending_in_order(), arena.place(measure) as place:
            batches = [str(file) for file in data.make().batch_files]
            question = {"measure": measure, "base": str(data.base), "batches": batches}
            profiles[measure] = place.ask("benchmarks.profile", question)
    whole = {
        "machine": machine(), "versions": versions(), "rows": ROWS, "profiles": profiles,
    }  # fmt: skip
    PROFILE.write_text(json.dumps(whole, indent=1) + "\n")
    return 0


def take(
    *, warehouse: str, scratch: str, measure: str, base: str, batches: Sequence[str]
) -> dict[str, Any]:
    """Of the last batch, for each of its acts: the seconds, and what Spark ran in them."""
    log_folder = Path(scratch).with_name("events")
    log_folder.mkdir()
    spark = open_session(
        Ours.jars, {**Ours.settings(warehouse), **settings(log_folder)}, Path(scratch)
    )
    moments: dict[str, Moments] = {}
    try:
        ours = Ours(spark, warehouse)
        ours.load(spark.read.parquet(base))
        acts = _ACTS[measure](ours)
        for batch in batches:
            with persisted(_prepared(spark, measure, batch)) as rows:
                rows.count()
                for name, act in acts.items():
                    began = time.time() * 1000
                    act(rows)
                    moments[name] = (began, time.time() * 1000)
    finally:
        spark.stop()
    log = EventLog.read(log_folder)
    return {name: _profile(log, within) for name, within in moments.items()}


def _prepared(spark: SparkSession, measure: str, batch: str) -> DataFrame:
    rows = spark.read.parquet(batch)
    return records_of(rows, refuse=False) if measure == "P4" else rows


def _applying(ours: Ours) -> Acts:
    return {OURS: ours.apply, "count": lambda _: ours.live_rows().count()}


def _inserting(ours: Ours) -> Acts:
    create_bare_table(ours.lake)
    return {OURS: ours.apply, BARE_APPEND: lambda rows: append_bare(ours.lake, rows)}


def _decoding(ours: Ours) -> Acts:
    quarantine = TableHandle(ours.lake, naming.QUARANTINE).target()

    return {
        OURS: lambda records: decode_in_tasks(records, quarantine),
        BARE_PARSING: lambda records: evaluate(parsed(records)),
    }


_ACTS: Mapping[str, Callable[[Ours], Acts]] = {
    "P1": _applying,
    "P3": _inserting,
    "P4": _decoding,
}


def _profile(log: EventLog, within: Moments) -> dict[str, Any]:
    queries = log.queries(within)
    seconds = (within[1] - within[0]) / 1000
    return {
        "seconds": round(seconds, 3),
        "driver_alone": round(idle_seconds(queries, seconds), 3),
        "queries": [asdict(query) for query in queries],
    }


if __name__ == "__main__":
    sys.exit(main())
