"""One contender's turn: loads the table, brings in each batch, leaves the live rows to compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from benchmarks.contender import Contender
from benchmarks.contenders import CONTENDERS
from benchmarks.metering import metered
from benchmarks.requests import requests_so_far
from benchmarks.session import open_session


def take(
    *,
    contender: str,
    warehouse: str,
    scratch: str,
    base: str,
    batches: Sequence[str],
    live_rows: str,
) -> list[Mapping[str, Any]]:
    """Each batch's figures, the session's first ones included; `live_rows` is written as Parquet.

    `seconds`, `cpu_seconds`, those by kind of thread, and `peak_mib` include one count over the
    table, which alone took `counting` seconds; `requests` are those of the batch.
    """
    kind = CONTENDERS[contender]
    spark = open_session(kind.jars, kind.settings(warehouse), Path(scratch))
    try:
        measured = kind(spark, warehouse)
        measured.load(spark.read.parquet(base))
        figures = []
        for batch in batches:
            changes = spark.read.parquet(batch).cache()
            changes.count()  # decoded, and in memory: from here on it counts
            figures.append(_measure(measured, changes))
            changes.unpersist()
        measured.live_rows().write.parquet(live_rows)
        return figures
    finally:
        spark.stop()


def _measure(contender: Contender, changes: DataFrame) -> Mapping[str, Any]:
    before = requests_so_far()
    with metered() as applying:
        contender.apply(changes)
    spent = requests_so_far() - before
    with metered() as counting:
        contender.live_rows().count()
    return {
        "seconds": applying.seconds + counting.seconds,
        "counting": counting.seconds,
        "cpu_seconds": applying.cpu_seconds + counting.cpu_seconds,
        "peak_mib": max(applying.peak_mib, counting.peak_mib),
        "cpu_by_kind": {
            kind: seconds + counting.cpu_by_kind.get(kind, 0.0)
            for kind, seconds in applying.cpu_by_kind.items()
        },
        "requests": asdict(spent),
    }
