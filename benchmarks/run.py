"""`python -m benchmarks.run [SIZE] [MEASURE ...] [--minutes N]`: measure, and write the JSON.

Sizes are `full`, `short` and `tiny`; the JSON lies below build/benchmarks, but of the full size: a
measure of that size is a result, and takes its place in benchmarks/results/full.json as soon as it
is there; `buffering` and `views` have a file each. Measures may be hours apart, and on another
machine of the kind, so each says which commit was measured, when, and by what processor. Those in
`STEPPED`, `SCALE_MEASURES` and `PARTS` have steps, which are kept: with `--minutes` no further step
begins after that time, and the same command goes on, also after an interrupt.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.append import measure_append
from benchmarks.apply import measure_apply, measure_far, measure_growth
from benchmarks.buffering import measure_buffering
from benchmarks.changelog import (
    measure_changelog,
    measure_changelog_requests,
    measure_hundreds,
    measure_state_requests,
    measure_states,
)
from benchmarks.decode import measure_decode
from benchmarks.first_load import measure_first_load
from benchmarks.machine import code_digest, machine, versions
from benchmarks.race.measure import FAR, NEAR, measure_race
from benchmarks.results import Measure
from benchmarks.scale import SCALE_MEASURES
from benchmarks.session import PROJECT
from benchmarks.sizes import SIZES, Size
from benchmarks.steps import Steps, Unfinished
from benchmarks.streaming import measure_streaming
from benchmarks.targets import targets_of
from benchmarks.upkeep import measure_maintenance, measure_reading
from benchmarks.view_costs import measure_views
from cdclake.interrupts import ending_in_order

WORK = PROJECT / "build" / "benchmarks"
RESULTS = PROJECT / "benchmarks" / "results" / "full.json"
MEASURES: dict[str, Callable[[Size, Path], Measure]] = {
    "P3": measure_append,
    "P4": measure_decode,
    "P7": measure_reading,
    "P8": measure_maintenance,
}
STEPPED: dict[str, Callable[[Size, Path, Steps], Measure]] = {
    "P1": measure_apply,
    "P2": measure_growth,
    "P5": measure_first_load,
    "P6": measure_streaming,
    "P9": measure_far,
    "N10": partial(measure_race, NEAR),
    "N10a": partial(measure_race, FAR),
}
# Costs in absolute units, without a peer.
COSTS: dict[str, Callable[[Size, Path], dict[str, Any]]] = {
    "N1": measure_states,
    "N1a": measure_changelog,
    "N7": measure_state_requests,
    "N7a": measure_changelog_requests,
    "N8": measure_hundreds,
}
# Measures that are not on the page, each kept in a file of its name.
PARTS: dict[str, Callable[[Size, Path, Steps], dict[str, Any]]] = {
    "buffering": lambda size, work, _: measure_buffering(size, work),
    "views": measure_views,
}
NAMES = (*sorted((*MEASURES, *STEPPED)), *COSTS, *SCALE_MEASURES, *PARTS)


def main() -> int:
    """0 if every end state was right, 1 if one was wrong, 2 for a bad word, 3 if steps are left."""
    words = _words()
    size, work, code = SIZES[words.size], WORK / words.size, code_digest()
    until = time.monotonic() + 60 * words.minutes
    ends_right = True
    for measure in words.measures or size.measures:
        say(f"{measure} ...")
        steps = Steps(work / "steps" / f"{measure}.json", code, until)
        try:
            with ending_in_order():
                found, is_right = _taken(measure, size, work, steps)
        except Unfinished as step:
            say(f"{measure} goes on with {step}: run the command again")
            return 3
        say(f"{measure} {json.dumps({k: v for k, v in found.items() if k != 'runs'})}")
        keep(_place(words.size, measure), measure, found)
        steps.end()
        ends_right = ends_right and is_right
    return 0 if ends_right else 1


def _words() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run")
    parser.add_argument("size", choices=SIZES, nargs="?", default="short")
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=", ".join(NAMES))
    parser.add_argument("--minutes", type=float, default=float("inf"))
    words = parser.parse_args()
    if unknown := set(words.measures) - {*NAMES}:
        parser.error(f"{', '.join(sorted(unknown))} is no measure: choose of {', '.join(NAMES)}")
    return words


def _place(size: str, measure: str) -> Path:
    if size != "full":
        return WORK / f"{size}.json"
    return RESULTS.with_name(f"{measure}.json") if measure in PARTS else RESULTS


def _taken(measure: str, size: Size, work: Path, steps: Steps) -> tuple[dict[str, Any], bool]:
    """The measure as it is kept, and whether every end state was right."""
    if measure in COSTS:
        return _whole(measure, _circumstances(), COSTS[measure](size, work)), True
    if measure in SCALE_MEASURES:
        return _whole(measure, _circumstances(), SCALE_MEASURES[measure](size, work, steps)), True
    if measure in PARTS:
        part = PARTS[measure](size, work, steps)
        is_right = all(run["wrong"] is None for run in part["runs"])
        return {"measured": _circumstances(), **part}, is_right
    measured = _circumstances()  # before it begins: a commit may be made meanwhile
    if measure in STEPPED:
        taken = STEPPED[measure](size, work, steps)
    else:
        taken = MEASURES[measure](size, work)
    is_right = all(run.wrong is None for run in taken.runs)
    return _whole(measure, measured, taken.as_json()), is_right


def _whole(measure: str, measured: dict[str, Any], taken: dict[str, Any]) -> dict[str, Any]:
    """Return the measure with its circumstances and its targets."""
    return {"measured": measured, "targets": targets_of(measure, taken), **taken}


def keep(place: Path, measure: str, found: dict[str, Any]) -> None:
    """Write the measure into the file of results, in its place among the others.

    A peer that it did without, and that is not here, has the version by which others were taken.
    """
    kept = json.loads(place.read_text()) if place.exists() else {"versions": {}, "measures": {}}
    measures = {**kept["measures"], measure: found}
    ordered = {name: measures[name] for name in NAMES if name in measures}
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
