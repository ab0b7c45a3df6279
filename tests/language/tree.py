"""Which files the measures cover, and the groups that they are counted in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tests.language.measures import Measures, measure, total

PROJECT = Path(__file__).resolve().parents[2]

# Folders of the product's code; one that does not exist is skipped, a symlink is not followed.
PRODUCT = ("cdclake", "glue_jobs", "lambda", "cli", "stacks", "local", "scripts", "benchmarks")
PAGES = ("docs", "pipelines", ".github")
_SUFFIXES = {".py", ".md", ".sh", ".yaml", ".yml"}
_ROOT = "(root)"


def covered(project: Path = PROJECT) -> Iterator[Path]:
    """Yield every measured file once: no link, nothing built or installed."""
    for entry in sorted(project.iterdir()):
        if entry.is_symlink():
            continue
        if entry.is_dir() and entry.name in (*PRODUCT, *PAGES):
            yield from _inside(entry)
        elif entry.is_file() and _is_prose(entry) and not entry.name.startswith("."):
            yield entry


def _inside(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.is_symlink() or entry.name in {"__pycache__", "node_modules", "jars"}:
            continue
        if entry.is_dir():
            yield from _inside(entry)
        elif _is_prose(entry):
            yield entry


def _is_prose(file: Path) -> bool:
    return file.suffix in _SUFFIXES or file.name == "Makefile"


def group_of(path: str) -> str:
    """Return the group of a file: its top folder, or two levels where the top holds packages."""
    parts = PurePosixPath(path).parts
    if len(parts) == 1:
        return _ROOT
    if parts[0] in ("cdclake", "docs") and len(parts) > 2:
        return f"{parts[0]}/{parts[1]}"
    return parts[0]


def measure_groups(project: Path = PROJECT) -> dict[str, Measures]:
    """Measure every covered file and add up the counts per group."""
    groups = defaultdict[str, list[Measures]](list)
    for file in covered(project):
        path = file.relative_to(project).as_posix()
        groups[group_of(path)].append(measure(path, file.read_text()))
    return {group: total(groups[group]) for group in sorted(groups)}
