"""One contender's turn, in a process of its own: `python -m benchmarks.turn QUESTION ANSWER`.

Loads the table, brings in each batch, and leaves the live rows as Parquet for whoever compares.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from benchmarks.contenders import CONTENDERS
from benchmarks.metering import metered
from benchmarks.requests import Requests, requests_so_far
from benchmarks.session import open_session


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a turn is to do; `warehouse` is a folder, or `s3://` and a bucket."""

    contender: str
    warehouse: str
    scratch: str
    base: str
    batches: list[str]
    live_rows: str  # folder to write what readers see in the end


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFigures:
    """What one batch took; `seconds` includes one count over the table, which is `counting`."""

    seconds: float
    counting: float
    cpu_seconds: float
    peak_mib: int
    requests: Requests


def take(question: Question) -> list[BatchFigures]:
    """Each batch's figures."""
    kind = CONTENDERS[question.contender]
    settings = kind.settings(question.warehouse)
    spark = open_session(kind.jars, settings, Path(question.scratch))
    try:
        contender = kind(spark, question.warehouse)
        contender.load(spark.read.parquet(question.base))
        figures = []
        for batch in question.batches:
            changes = spark.read.parquet(batch).cache()
            changes.count()  # decoded, and in memory: from here on it counts
            figures.append(_measure(contender, changes))
            changes.unpersist()
        contender.live_rows().write.parquet(question.live_rows)
        return figures
    finally:
        spark.stop()


def _measure(contender: Any, changes: DataFrame) -> BatchFigures:
    before = requests_so_far()
    with metered() as applying:
        contender.apply(changes)
    spent = requests_so_far() - before
    with metered() as counting:
        contender.live_rows().count()
    return BatchFigures(
        seconds=applying.seconds + counting.seconds,
        counting=counting.seconds,
        cpu_seconds=applying.cpu_seconds + counting.cpu_seconds,
        peak_mib=max(applying.peak_mib, counting.peak_mib),
        requests=spent,
    )


def main() -> int:
    question = Question(**json.loads(Path(sys.argv[1]).read_text()))
    figures = [asdict(batch) for batch in take(question)]
    Path(sys.argv[2]).write_text(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
