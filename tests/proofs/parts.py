"""The parts of `make prove`: what CI leaves out, in units that are run and recorded one by one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.faults.catalogue import FAULTS, GROUPS
from tests.mutations.broken import MUTATIONS
from tests.proofs.marked_tests import count_tests
from tests.recorded_requests.record import PARTS

PROJECT = Path(__file__).resolve().parents[2]
MODEL_SEEDS, SEEDS_PER_UNIT = 200, 20
READS, READS_PER_UNIT = 1000, 100
FAULT_SEEDS = 5
_READS = "tests/trino/test_reads.py"
_PROOFS = "tests/unit/test_proofs.py"  # has the marks in texts
_REQUESTS = "tests/local/test_recorded_requests.py"
_MARKED = re.compile(r"\bmark\.(slow|synth)\b")


@dataclass(frozen=True, slots=True)
class Unit:
    """One command of a part: arguments of `python -m`, and variables of its environment."""

    name: str
    command: tuple[str, ...]
    tests: int = 1  # test functions that CI leaves out, mutations or faults
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """Units that prove one thing; each takes minutes, so that the part can be interrupted."""

    name: str
    proves: str
    units: tuple[Unit, ...]


_PROVES = {
    "slow-unit": "kills of the local AWS server and of the supervisor; the measure of buffers",
    "slow-spark": "the engine on Spark: histories, bulk load, unknown commits, one writer, MERGE",
    "slow-local": (
        "the real local lake: crashes, edges of Debezium, Kafka and PostgreSQL, operations"
    ),
    "installed": (
        "the wheel alone: a new project, its tests, `cdk synth`, a lake that equals its source"
    ),
    "browser": "the page of `cdclake ui` in Debian's Chromium, over planted answers",
    "slow-trino": (
        "Athena's SQL in a Trino: each amount applied, older stamps, wide tables; a whole lake"
    ),
    "reads": f"{READS:,} reads of `_current` in Trino during writes, jobs and rollbacks",
    "model": f"{MODEL_SEEDS} random histories on the real local lake, with kills",
    "mutations": "faults of the code that the tests must notice",
    "synth": "the deployment by the CDK CLI, and over many tables",
    "site": "the docs' site: strict, complete, and nothing of it from another host",
    "faults": f"each fault of the campaign on the real local lake under load, {FAULT_SEEDS} seeds",
}


def all_parts() -> list[Part]:
    """Return every part, in the order in which they are best run."""
    slow_trino = _marked_files("tests/trino", "slow")
    slow_unit = _marked_files("tests/unit", "slow")
    units: dict[str, tuple[Unit, ...]] = {
        "slow-unit": tuple(unit for unit in slow_unit if unit.name != _PROOFS),
        "slow-spark": _marked_files("tests/spark", "slow"),
        "slow-local": (*_local_units(), *_marked_files("tests/avro", "slow")),
        "installed": _marked_files("tests/installed", "slow"),
        "browser": _marked_files("tests/browser", "slow"),
        "slow-trino": tuple(unit for unit in slow_trino if unit.name != _READS),
        "reads": tuple(_reads_unit(first) for first in range(0, READS, READS_PER_UNIT)),
        "model": tuple(_model_unit(first) for first in range(0, MODEL_SEEDS, SEEDS_PER_UNIT)),
        "mutations": _mutation_units(),
        "synth": _marked_files("tests/synth", "synth"),
        "site": _marked_files("tests/site", "slow"),
        "faults": tuple(
            _fault_unit(group, seed) for seed in range(FAULT_SEEDS) for group in GROUPS
        ),
    }
    return [Part(name, _PROVES[name], of_part) for name, of_part in units.items()]


def _marked_files(folder: str, mark: str, *, whole: bool = False) -> tuple[Unit, ...]:
    """Return a unit for each file with the mark, of its marked tests or of the whole file.

    Only the marked tests count: CI runs the others.
    """
    files = sorted((PROJECT / folder).glob("**/test_*.py"))
    marked = [file for file in files if mark in _MARKED.findall(file.read_text())]
    selected = "" if whole else mark
    return tuple(
        Unit(name, ("pytest", "-q", "-m", selected, name), count_tests(file.read_text(), mark))
        for file in marked
        for name in [str(file.relative_to(PROJECT))]
    )


def _local_units() -> Iterator[Unit]:
    """Yield a unit for each file; of the recorded requests one for each test, with its own lake.

    Other tests of a file share a lake, and go on with what those before have made.
    """
    for unit in _marked_files("tests/local", "slow", whole=True):
        if unit.name != _REQUESTS:
            yield unit
            continue
        for part in range(len(PARTS)):
            test = f"{_REQUESTS}::test_the_recording_has_what_the_jobs_ask_for[{part}]"
            yield Unit(f"{_REQUESTS}, part {part + 1}", ("pytest", "-q", test))


def _model_unit(first: int) -> Unit:
    seeds = (("CDCLAKE_MODEL_SEEDS", str(SEEDS_PER_UNIT)), ("CDCLAKE_MODEL_SEED", str(first)))
    return Unit(
        f"seeds {first} to {first + SEEDS_PER_UNIT - 1}",
        ("pytest", "-q", "-m", "model", "tests/model_lake/test_model.py"),
        environment=seeds,
    )


def _fault_unit(group: str, seed: int) -> Unit:
    command = ("tests.faults.run", "--group", group, "--seed", str(seed))
    faults = sum(fault.group == group for fault in FAULTS)
    return Unit(f"group {group}, seed {seed}", command, faults)


def _reads_unit(first: int) -> Unit:
    variables = (
        ("CDCLAKE_READS", str(READS_PER_UNIT)),
        ("CDCLAKE_READ_SEED", str(first // READS_PER_UNIT)),
    )
    return Unit(
        f"reads {first + 1} to {first + READS_PER_UNIT}",
        ("pytest", "-q", "-m", "slow", _READS),
        environment=variables,
    )


def _mutation_units() -> tuple[Unit, ...]:
    files = sorted({mutation.tests[0] for mutation in MUTATIONS})
    return tuple(
        Unit(
            name,
            ("tests.mutations.run", "--tests", name),
            sum(name in mutation.tests for mutation in MUTATIONS),
        )
        for name in files
    )
