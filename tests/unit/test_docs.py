"""What the docs point at exists: a proof that is named and not there would be none."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(PROJECT / "docs").rglob("*.md"), PROJECT / "README.md"])


def names_of_tests() -> set[str]:
    tests = (PROJECT / "tests").rglob("test_*.py")
    return {name for file in tests for name in re.findall(r"def (test_\w+)", file.read_text())}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tests_and_files_that_a_page_names_exist(page: Path) -> None:
    words = re.findall(r"`([^`\s]+)`", page.read_text())
    paths = [w for w in words if re.match(r"(cdclake|glue_jobs|lambda|stacks|tests|docs)/", w)]
    missing = [path for path in paths if not list(PROJECT.glob(path.rstrip("/")))]
    names = {word for word in words if word.startswith("test_") and "." not in word}
    assert (missing, names - names_of_tests()) == ([], set())
