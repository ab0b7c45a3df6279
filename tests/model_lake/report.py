"""A difference, so that somebody can find its cause: what to run again, and files to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.local.running import PROJECT
from tests.model_lake.audit import Change, Place
from tests.model_lake.compare import Differences
from tests.model_lake.history import History
from tests.model_lake.log import Event
from tests.model_lake.waves import SIZE

FOLDER = PROJECT / "build" / "test-model"


class LakeDiffers(AssertionError):
    """The lake is not what its source is."""


def verified(report: Mapping[str, Any]) -> Differences:
    """The keys that `verify` names; LakeDiffers if it found something else wrong."""
    if "error" in report or any(table["error"] for table in report["tables"]):
        raise LakeDiffers(f"verify failed: {report}")
    found: Differences = {}
    for table in report["tables"]:
        for example in table["first"]:
            place = (table["table"], "/".join(map(str, example["key"].values())))
            said = f"source {example['source']}, lake {example['lake']}"
            found[place] = f"verify: {example['kind']} in {example['columns']}: {said}"[:2000]
    if not report["ok"] and not found:
        raise LakeDiffers(f"verify found differences, but names none: {report}")
    return found


def fail_on(
    differences: Differences,
    owners: Mapping[Place, History],
    truth: Mapping[Place, Sequence[Change]],
    logs: Mapping[Place, Sequence[Event]],
) -> None:
    """Write down the first difference of each history, and raise LakeDiffers; fine if none."""
    if not differences:
        return
    lines = [f"{len(differences)} keys differ"]
    told: set[int] = set()
    for place, wrong in differences.items():
        owner = owners.get(place)
        if owner is None:
            lines.append(f"{place} is no history's: {wrong}")
        elif owner.seed not in told:
            told.add(owner.seed)
            lines += _told(owner, place, wrong, truth.get(place, ()), logs.get(place, ()))
    raise LakeDiffers("\n".join(lines))


def _told(
    owner: History, place: Place, wrong: str, changes: Sequence[Change], events: Sequence[Event]
) -> list[str]:
    FOLDER.mkdir(parents=True, exist_ok=True)
    script = FOLDER / f"seed-{owner.seed}.sql"
    script.write_text(owner.script())
    key = FOLDER / f"seed-{owner.seed}.txt"
    said = [f"{place}: {wrong}", "the source did", *map(str, changes)]
    key.write_text("\n".join([*said, "the log has", *map(str, events)]) + "\n")
    first = owner.seed - owner.seed % SIZE
    return [
        f"seed {owner.seed}, {place}: {wrong}",
        f"  run it again: make test-model SEEDS=1 SEED={owner.seed}",
        f"  beside its neighbours: make test-model SEEDS={SIZE} SEED={first}",
        f"  its SQL: {script}; the key's changes and events: {key}",
    ]
