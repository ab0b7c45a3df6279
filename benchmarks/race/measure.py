"""N10, and far away N10a: changes per CPU second and freshness by each contender.

A step is a leg: one contender, one round. A contender's rounds are its figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.comparison import Arena
from benchmarks.contenders import OURS
from benchmarks.race.racers import FLINK_UPSERT, RACERS, SPARK_MERGE
from benchmarks.results import Bound, Measure, Run, worst_subject
from benchmarks.sizes import Race, Size
from benchmarks.steps import Steps
from benchmarks.storage import in_folder

NEAR, FAR = "near", "far"
TARGETS = {FLINK_UPSERT: Bound(">=", 5), SPARK_MERGE: Bound(">=", 8)}


def measure_race(distance: str, size: Size, work: Path, steps: Steps) -> Measure:
    """Take the race; the figures on top are the CPU seconds of 100,000 changes at one rate."""
    arena, legs = Arena(work, in_folder), dict[str, list[Mapping[str, Any]]]()
    for number in range(size.race.rounds):
        for contender in RACERS:
            step = f"{contender} {number + 1}"
            leg = steps.take(step, partial(take_leg, arena, size.race, contender, distance))
            legs.setdefault(contender, []).append(leg)
    runs = [run_of(contender, distance, found) for contender, found in legs.items()]
    return worst_subject(runs, OURS, lambda _: TARGETS)


def run_of(contender: str, distance: str, legs: list[Mapping[str, Any]]) -> Run:
    """Return a contender's run of all rounds, which is wrong if a row of any round is."""
    wrong = sum(rows for leg in legs for rows in leg["wrong_rows"].values())
    said = f"{wrong} rows differ from the source" if wrong else None
    return Run(contender, {"subject": distance}, said, [leg["figures"] for leg in legs])


def take_leg(arena: Arena, race: Race, contender: str, distance: str) -> Mapping[str, Any]:
    """Return the figures and the wrong rows of a leg, taken in a process by itself."""
    with arena.place(f"race-{contender}") as place:
        asked = {"contender": contender, "is_far": distance == FAR, "race": asdict(race)}
        found: Mapping[str, Any] = place.ask("benchmarks.race.leg", asked)
        return found
