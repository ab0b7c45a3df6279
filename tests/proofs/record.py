"""Records of `make prove`: `docs/proofs/<part>.json`, one entry per unit, kept between runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = PROJECT / "docs" / "proofs"
# What the proofs are about; a change of any of these files makes earlier results stale. `cdclake/`
# has links to the other folders, which are not followed.
_FOLDERS = ("cdclake", "glue_jobs", "stacks", "lambda", "java")
_LOCKED = ("pom.xml", "jars.lock", "requirements.lock", "package-lock.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Result of one unit: counts of tests, mutations or faults, and what it ran on."""

    date: str
    commit: str  # of the checkout; `+` follows in older results if files had changed
    engine: str  # digest of the engine's files
    seconds: float
    tests: int  # of the unit when it ran; `passed` counts every case of a test function
    passed: int
    failed: int
    skipped: int

    @property
    def has_failed(self) -> bool:
        """True if something failed or nothing passed."""
        return self.failed > 0 or self.passed == 0

    @property
    def succeeded(self) -> bool:
        """True if something passed, nothing failed and nothing was skipped."""
        return not self.has_failed and self.skipped == 0

    @property
    def is_reproducible(self) -> bool:
        """True if its commit has the files that ran."""
        return not self.commit.endswith("+")

    def proves(self, tests: int) -> bool:
        """Check whether it succeeded on a commit, with at least the tests that there are now."""
        return self.succeeded and self.is_reproducible and tests <= self.tests


def engine_digest(project: Path = PROJECT) -> str:
    """Compute the digest of the engine's files."""
    digest = hashlib.sha256()
    files = [file for folder in _FOLDERS for file in sorted((project / folder).rglob("*"))]
    for file in (*files, *(project / name for name in _LOCKED)):
        if file.is_file() and not file.is_symlink() and file.suffix != ".pyc":
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
