"""`python -m benchmarks.run [SIZE] [MEASURE ...]`: measure, print a line each, write the JSON.

Sizes are `full`, `short` and `tiny`; the JSON lies below build/benchmarks. Only a full run of every
measure is a result: it goes to benchmarks/results/full.json, too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.append import measure_append
from benchmarks.apply import measure_apply, measure_far, measure_growth
from benchmarks.decode import measure_decode
from benchmarks.machine import machine, versions
from benchmarks.results import Measure
from benchmarks.session import PROJECT
from benchmarks.sizes import SIZES, Size
from benchmarks.upkeep import measure_maintenance, measure_reading

WORK = PROJECT / "build" / "benchmarks"
RESULTS = PROJECT / "benchmarks" / "results" / "full.json"
MEASURES: dict[str, Callable[[Size, Path], Measure]] = {
    "P1": measure_apply,
    "P2": measure_growth,
    "P3": measure_append,
    "P4": measure_decode,
    "P7": measure_reading,
    "P8": measure_maintenance,
    "P9": measure_far,
}


def main() -> int:
    """0 if every end state was right, 1 if one was wrong, 2 for a word that is no measure."""
    name, *chosen = sys.argv[1:] or ["short"]
    if name not in SIZES or set(chosen) - set(MEASURES):
        say(f"sizes are {', '.join(SIZES)}, measures {', '.join(MEASURES)}")
        return 2
    size = SIZES[name]
    measures: dict[str, Any] = {}
    found = {"machine": machine(), "versions": versions(), "measures": measures}
    for measure in chosen or size.measures:
        say(f"{measure} ...")
        measures[measure] = MEASURES[measure](size, WORK / name).as_json()
        shown = {k: v for k, v in measures[measure].items() if k != "runs"}
        say(f"{measure} {json.dumps(shown)}")
        write(found, WORK / f"{name}.json")  # what is measured is not lost if the next one fails
    if name == "full" and not chosen:
        write(found, RESULTS)
    wrong = [run for m in measures.values() for run in m["runs"] if run["wrong"] is not None]
    return 1 if wrong else 0


def write(found: dict[str, Any], place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(found, indent=1) + "\n")
    say(f"written to {place.relative_to(PROJECT)}")


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
