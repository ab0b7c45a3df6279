"""Records of `make prove`: `docs/proofs/<part>.json`, one entry per unit, kept between runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = PROJECT / "docs" / "proofs"
# What the proofs are about; a change of any of these files makes earlier results stale.
ENGINE = ("glue_jobs/**/*.py", "cdclake/**/*.py", "stacks/**/*.py", "java/**/*.java", "pom.xml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Result of one unit: counts of tests, mutations or faults, and what it ran on."""

    date: str
    commit: str  # of the checkout; `+` follows if files had changed
    engine: str  # digest of the engine's files
    seconds: float
    tests: int  # of the unit when it ran; `passed` counts every case of a test function
    passed: int
    failed: int
    skipped: int

    @property
    def succeeded(self) -> bool:
        """True if something passed and nothing failed."""
        return self.passed > 0 and self.failed == 0

    def proves(self, tests: int) -> bool:
        """Check whether it succeeded, with at least as many tests as the unit has now."""
        return self.succeeded and tests <= self.tests


def engine_digest(project: Path = PROJECT) -> str:
    """Compute the digest of the engine's files."""
    digest = hashlib.sha256()
    for pattern in ENGINE:
        for file in sorted(project.glob(pattern)):
            digest.update(f"{file.relative_to(project)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def read_results(part: str, folder: Path = FOLDER) -> dict[str, Result]:
    """Read a part's results by unit; empty if it has never run."""
    file = folder / f"{part}.json"
    if not file.exists():
        return {}
    return {name: Result(**entry) for name, entry in json.loads(file.read_text()).items()}


def write_results(part: str, results: Mapping[str, Result], folder: Path = FOLDER) -> None:
    """Write a part's results."""
    folder.mkdir(parents=True, exist_ok=True)
    entries = {name: asdict(results[name]) for name in sorted(results)}
    (folder / f"{part}.json").write_text(json.dumps(entries, indent=1) + "\n")
