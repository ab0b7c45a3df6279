"""`python -m benchmarks.run [SIZE] [MEASURE ...]`: measure, print a line each, write the JSON.

Sizes are `full`, `short` and `tiny`; the JSON lies below build/benchmarks, but of the full size: a
measure of that size is a result, and takes its place in benchmarks/results/full.json as soon as it
is there; `buffering` and `views` have a file each. Measures may be hours apart, and on another
machine of the kind, so each says which commit was measured, when, and by what processor.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.append import measure_append
from benchmarks.apply import measure_apply, measure_far, measure_growth
from benchmarks.buffering import measure_buffering
from benchmarks.changelog import (
    measure_changelog,
    measure_changelog_requests,
    measure_state_requests,
    measure_states,
)
from benchmarks.decode import measure_decode
from benchmarks.first_load import measure_first_load
from benchmarks.machine import machine, versions
from benchmarks.results import Measure
from benchmarks.session import PROJECT
from benchmarks.sizes import SIZES, Size
from benchmarks.streaming import measure_streaming
from benchmarks.upkeep import measure_maintenance, measure_reading
from benchmarks.view_costs import measure_views
from cdclake.local.demo.interrupts import ending_in_order

WORK = PROJECT / "build" / "benchmarks"
RESULTS = PROJECT / "benchmarks" / "results" / "full.json"
MEASURES: dict[str, Callable[[Size, Path], Measure]] = {
    "P1": measure_apply,
    "P2": measure_growth,
    "P3": measure_append,
    "P4": measure_decode,
    "P5": measure_first_load,
    "P6": measure_streaming,
    "P7": measure_reading,
    "P8": measure_maintenance,
    "P9": measure_far,
}
# Costs in absolute units, without a peer.
COSTS: dict[str, Callable[[Size, Path], dict[str, Any]]] = {
    "N1": measure_states,
    "N1a": measure_changelog,
    "N7": measure_state_requests,
    "N7a": measure_changelog_requests,
}
# Measures without a target, each kept in a file of its name.
PARTS: dict[str, Callable[[Size, Path], dict[str, Any]]] = {
    "buffering": measure_buffering,
    "views": measure_views,
}


def main() -> int:
    """0 if every end state was right, 1 if one was wrong, 2 for a word that is no measure."""
    name, *chosen = sys.argv[1:] or ["short"]
    if name not in SIZES or set(chosen) - {*MEASURES, *COSTS, *PARTS}:
        say(f"sizes are {', '.join(SIZES)}, measures {', '.join((*MEASURES, *COSTS, *PARTS))}")
        return 2
    size = SIZES[name]
    ends_right = True
    for measure in chosen or size.measures:
        say(f"{measure} ...")
        with ending_in_order():
            found, is_right = _taken(measure, size, WORK / name)
        say(f"{measure} {json.dumps({k: v for k, v in found.items() if k != 'runs'})}")
        keep(_place(name, measure), measure, found)
        ends_right = ends_right and is_right
    return 0 if ends_right else 1


def _place(size: str, measure: str) -> Path:
    if size != "full":
        return WORK / f"{size}.json"
    return RESULTS.with_name(f"{measure}.json") if measure in PARTS else RESULTS


def _taken(measure: str, size: Size, work: Path) -> tuple[dict[str, Any], bool]:
    """The measure as it is kept, and whether every end state was right."""
    if measure in COSTS:
        return {"measured": _circumstances(), **COSTS[measure](size, work)}, True
    if measure in PARTS:
        part = PARTS[measure](size, work)
        is_right = all(run["wrong"] is None for run in part["runs"])
        return {"measured": _circumstances(), **part}, is_right
    measured = _circumstances()  # before it begins: a commit may be made meanwhile
    taken = MEASURES[measure](size, work)
    is_right = all(run.wrong is None for run in taken.runs)
    return {"measured": measured, **taken.as_json()}, is_right


def keep(place: Path, measure: str, found: dict[str, Any]) -> None:
    """Write the measure into the file of results, in its place among the others.

    A peer that it did without, and that is not here, has the version by which others were taken.
    """
    kept = json.loads(place.read_text()) if place.exists() else {"versions": {}, "measures": {}}
    measures = {**kept["measures"], measure: found}
    ordered = {name: measures[name] for name in (*MEASURES, *COSTS, *PARTS) if name in measures}
    named = {**kept["versions"], **versions()}
    whole = {"machine": machine(), "versions": named, "measures": ordered}
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(whole, indent=1) + "\n")
    say(f"written to {place.relative_to(PROJECT)}")


def _circumstances() -> dict[str, Any]:
    """What may differ between one measure of a file and the next."""
    return {
        "commit": versions()["cdclake"],
        "at": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": machine()["processor"],
    }


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
