"""Tests that are skipped: those that need files from elsewhere, and what `tests/README.md` says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import given_folders
from tests.given_folders import given_folder, is_given, needs_files
from tests.source_tree import PROJECT


def test_files_are_those_of_the_environment_or_next_to_the_clone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CDCLAKE_PAGILA", raising=False)
    monkeypatch.setattr(given_folders, "SHARED", tmp_path)
    assert not is_given("pagila")
    assert "CDCLAKE_PAGILA" in needs_files("pagila").kwargs["reason"]
    (tmp_path / "pagila").mkdir()
    assert is_given("pagila") and given_folder("pagila") == tmp_path / "pagila"
    monkeypatch.setenv("CDCLAKE_PAGILA", "/wrong")
    assert is_given("pagila") and given_folder("pagila") == Path("/wrong")


SKIPS = {
    "Pagila's files": r"@needs_files\(\"pagila\"\)",
    "root's rights": r"@pytest\.mark\.skipif\(os\.geteuid\(\)",
    "Node.js": r"@needs_node\b|@pytest\.mark\.skipif\(\s*shutil\.which\(\"node\"\)",
    "Linux": r"@pytest\.mark\.skipif\(sys\.platform",
}


def test_readme_counts_the_default_tests_that_are_skipped() -> None:
    readme = (PROJECT / "tests" / "README.md").read_text()
    rows = dict(re.findall(r"^\| ([^|,]+?)(?:,[^|]*)? \| (\d+)\b", readme, re.M))
    texts = [file.read_text() for file in (PROJECT / "tests").rglob("test_*.py")]
    slow = re.compile(r"^pytestmark = [^=]*\bmark\.slow\b", re.M)
    default = "\n".join(text for text in texts if not slow.search(text))
    counts = {need: len(re.findall(f"(?m)^(?:{mark})", default)) for need, mark in SKIPS.items()}
    assert {need: int(rows[need]) for need in SKIPS} == counts
    decorated = re.findall(r"^@(?:needs_(?!hudi)|pytest\.mark\.skip)", default, re.M)
    assert len(decorated) == sum(counts.values()), "list the new ones in tests/README.md"
