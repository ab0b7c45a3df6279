"""A leg of the race: one contender from an empty lake to the comparison of its rows."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.race import spark
from benchmarks.race.contender_process import ON_CORE
from benchmarks.race.ground import Ground, ground_of
from benchmarks.race.held_rate import held_rate
from benchmarks.race.racers import RACERS
from benchmarks.race.reading import duckdb_reads, wrong_rows
from benchmarks.sizes import Race
from cdclake.local.lake.lake import LocalLake

TRIGGER_SECONDS = 10  # as by default; for Flink the time between two checkpoints


def take(
    *, warehouse: str, scratch: str, contender: str, is_far: bool, race: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the held rate, the figures at the common rate and at half of the held one, and reads.

    `seconds` are the CPU seconds of 100,000 changes at the common rate.
    """
    given, folder = Race(**race), Path(warehouse)
    ground = ground_of(
        RACERS[contender],
        folder,
        tables=given.tables,
        trigger_seconds=TRIGGER_SECONDS,
        rows=given.rows,
        is_far=is_far,
    )
    reading = folder / "reading"
    with ground as found:
        figures = _streamed(found, given, contender)
        found.end_contender()
        reading.mkdir()
        read = read_by_spark(found.lake, contender, reading)
        wrong = wrong_rows(found.lake.dsn, found.lake.plan.tables, reading / "rows")
        figures |= {**read, "duckdb": duckdb_reads(found.lake, contender)}
    return {"figures": figures, "wrong_rows": wrong}


def _streamed(ground: Ground, given: Race, contender: str) -> dict[str, Any]:
    """Return the figures of the stream, after a warm-up."""
    ground.traffic.hold(given.common_rate, given.warm_up_seconds)
    ground.sight.await_arrival()
    common = ground.stretch(given.common_rate, given.stretch_seconds)
    trial = partial(ground.trial, seconds=given.trial_seconds)
    rate, greatest = held_rate(trial, given.first_rates[contender], given.most)
    half = ground.stretch(rate / 2, given.stretch_seconds)
    spent = common["cpu_seconds"]
    return {
        "seconds": round(100_000 * spent / common["changes"], 3),
        "cpu_seconds": spent,
        "cpu_by_kind": common["cpu_by_kind"],
        "requests": common["requests"],
        "held_rate": round(rate),
        "greatest_tried": round(greatest),
        "common": common,
        "half": half,
    }


def read_by_spark(lake: LocalLake, contender: str, folder: Path) -> Mapping[str, float]:
    """Return the seconds of Spark's reads, on the contender's core, after it has ended."""
    asked, answered = folder / "question.json", folder / "answer.json"
    question = {
        "contender": contender,
        "plan": lake.plan.to_json(),
        "settings": spark.settings(lake, folder),
        "rows": str(folder / "rows"),
    }
    asked.write_text(json.dumps(question))
    words = [sys.executable, "-m", "benchmarks.child", "benchmarks.race.reading"]
    subprocess.run(
        [*ON_CORE, *words, str(asked), str(answered)],
        env=spark.variables(lake, folder),
        check=True,
    )
    found: Mapping[str, float] = json.loads(answered.read_text())
    return found
