"""Print every match in the given files and folders: `python -m tests.language.report PATH...`.

Without a path it prints the totals of every group.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.language.measures import find, measure, total
from tests.language.tree import covered, measure_groups


def main(arguments: Sequence[str]) -> str:
    """Return the report for these paths, which are relative to the current folder's project."""
    project = Path.cwd()
    if not arguments:
        groups = measure_groups(project)
        lines = [f"{group}: {measures}" for group, measures in groups.items()]
        return "\n".join([*lines, f"total: {total(groups.values())}"])
    texts = {_relative(file, project): file.read_text() for file in _chosen(arguments, project)}
    found = [str(finding) for path in texts for finding in find(path, texts[path])]
    sums = total(measure(path, text) for path, text in texts.items())
    return "\n".join([*found, f"{len(texts)} files: {sums}"])


def _chosen(arguments: Sequence[str], project: Path) -> Iterator[Path]:
    """Yield the files to report: a file as given, of a folder those that the measures cover."""
    for path in map(Path, dict.fromkeys(arguments)):
        if path.is_dir():
            within = path.resolve()
            yield from (file for file in covered(project) if file.resolve().is_relative_to(within))
        else:
            yield path


def _relative(file: Path, project: Path) -> str:
    resolved = file.resolve()
    return str(resolved.relative_to(project) if resolved.is_relative_to(project) else resolved)


if __name__ == "__main__":
    sys.stdout.write(main(sys.argv[1:]) + "\n")
