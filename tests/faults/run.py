"""Inject the faults into a real lake under concurrent writers, and compare source and lake.

    python -m tests.faults.run [--only F1,F25] [--group storage] [--seed 0]

The faults of one run share one lake and are injected one after the other. After each, at rest,
every row and every event is compared with what the source's audit says. Results are merged into
docs/proofs/fault-campaign.json, by fault and seed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

from tests.faults.catalogue import FAULTS, GROUPS
from tests.faults.fault import Fault, FaultyLake
from tests.local.running import PROJECT, lake_in
from tests.model_lake.history import history
from tests.model_lake.lake_model import Model
from tests.model_lake.shapes import pipeline
from tests.model_lake.waves import Wave
from tests.proofs.run import git, say

RESULTS = PROJECT / "docs" / "proofs" / "fault-campaign.json"
HISTORIES = 12  # at a time
_SEEDS_PER_RUN, _SEEDS_PER_FAULT = 10_000, 50  # histories of different seeds have different keys


def main() -> int:
    """Run the chosen faults; return 1 if the lake differed after one of them."""
    parser = argparse.ArgumentParser(description="Inject faults into a real lake.")
    parser.add_argument("--only", default="", help="ids, separated by commas")
    parser.add_argument("--group", default="", choices=["", *GROUPS])
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    ids = [word for word in args.only.split(",") if word]
    if unknown := set(ids) - {fault.id for fault in FAULTS}:
        parser.error(f"unknown faults {', '.join(sorted(unknown))}")
    chosen = [f for f in FAULTS if (not ids or f.id in ids) and args.group in (f.group, "")]
    failures = run_faults(chosen, args.seed)
    say(f"{len(chosen)} faults, {len(failures)} not passed")
    for failure in failures:
        say(f"  {failure}")
    return 1 if failures else 0


def run_faults(faults: Sequence[Fault], seed: int) -> list[str]:
    """Inject the faults into one lake; return what failed. A failure ends the run."""
    with tempfile.TemporaryDirectory(prefix="cdclake-faults-") as name:
        folder = Path(name)
        file = folder / "model.yaml"
        file.write_text(pipeline())
        with lake_in(folder) as lake:
            model = Model(lake, file)
            model.prepare()
            model.run(_wave(seed, 0), lambda: None)
            faulty = FaultyLake(lake, file, Random(seed))
            for number, fault in enumerate(faults, start=1):
                try:
                    _inject(model, faulty, fault, _wave(seed, number), seed)
                except Exception as error:  # reported with the fault, whatever it is
                    return [f"{fault.id} ({fault.title}): {type(error).__name__}: {error}"[:6000]]
    return []


def _inject(model: Model, lake: FaultyLake, fault: Fault, wave: Wave, seed: int) -> None:
    started = time.monotonic()
    model.run(wave, lambda: fault.inject(lake), database_may_die=fault.database_may_die)
    injected = time.monotonic() - started
    model.check(quarantined=lake.quarantined)
    events = model.events()
    say(f"passed {time.monotonic() - started:5.0f} s  {fault.id}: {fault.title}")
    _record(
        fault.id,
        seed,
        {
            "title": fault.title,
            "date": datetime.now(UTC).strftime("%Y-%m-%d"),
            "commit": git("rev-parse", "--short=10", "HEAD"),
            "injected_s": round(injected, 1),
            "compared_after_s": round(time.monotonic() - started - injected, 1),
            "events_compared": events,
            "keys_different": 0,  # a difference raises
        },
    )


def _wave(seed: int, number: int) -> Wave:
    first = seed * _SEEDS_PER_RUN + number * _SEEDS_PER_FAULT
    seeds = range(first, first + HISTORIES)
    return Wave(number, tuple(history(one, truncates=one == first) for one in seeds))


def _record(fault: str, seed: int, result: dict[str, Any]) -> None:
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    by_seed = {**known.get(fault, {}), str(seed): result}
    known[fault] = dict(sorted(by_seed.items(), key=lambda each: int(each[0])))
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
