"""The project's Python files as modules: their names, their imports, and the rooms they are in."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path, PurePosixPath

PROJECT = Path(__file__).resolve().parents[1]
CODE = ("cdclake", "glue_jobs", "lambda", "stacks", "scripts", "benchmarks")
# The one import root: folders of the project that are reached by links inside `cdclake/`.
LINKS = {"jobs": "glue_jobs", "stacks": "stacks", "functions": "lambda"}
_PACKAGES = {folder: f"cdclake.{link}" for link, folder in LINKS.items()}
# Packages whose own packages are rooms; `cdclake` itself is another one.
_DIVIDED = ("cdclake.jobs", "cdclake.local", "cdclake.stacks")


@lru_cache
def sources(*folders: str) -> Mapping[str, str]:
    """Return the text of each Python file by its path, each once: links are not followed."""
    files = [*PROJECT.glob("*.py")]
    for folder in folders or CODE:
        for place, _, names in os.walk(PROJECT / folder, followlinks=False):
            files += [Path(place, name) for name in names if name.endswith(".py")]
    return {str(file.relative_to(PROJECT)): file.read_text() for file in sorted(files)}


def module_of(path: str) -> str:
    """Return the name by which the file at `path`, relative to the project, is imported.

    >>> module_of("glue_jobs/stream/batch.py"), module_of("cdclake/config/__init__.py")
    ('cdclake.jobs.stream.batch', 'cdclake.config')
    """
    first, *others = PurePosixPath(path).with_suffix("").parts
    parts = [_PACKAGES.get(first, first), *others]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@lru_cache(maxsize=2000)
def imported_modules(text: str) -> frozenset[str]:
    """Return every module that the text imports anywhere, `from a import b` as `a.b`."""
    return frozenset(_imported(ast.parse(text)))


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or "."
            yield from (f"{module}.{alias.name}" for alias in node.names)


def is_within(name: str, prefix: str, separator: str = ".") -> bool:
    """Tell whether `name` is `prefix` or below it."""
    return name == prefix or name.startswith(prefix + separator)


def import_graph(texts: Mapping[str, str]) -> dict[str, set[str]]:
    """Return which of these files' modules import which others of them."""
    by_module = {module_of(path): text for path, text in texts.items()}
    return {
        module: {known for name in imported_modules(text) if (known := _known(name, by_module))}
        for module, text in by_module.items()
    }


def _known(name: str, modules: Mapping[str, str]) -> str | None:
    """The module among these that `name` is, or is a name in."""
    if name in modules:
        return name
    parent = name.rpartition(".")[0]
    return parent if parent in modules else None


def room_of(module: str) -> str:
    """Return the room of one of our modules: a package, or a module that is in none.

    >>> [room_of(f"cdclake.{m}") for m in ("naming", "config.checks.aws", "jobs.stream.batch")]
    ['cdclake.naming', 'cdclake.config', 'cdclake.jobs.stream']
    """
    parts = module.split(".")
    return ".".join(parts[: 3 if ".".join(parts[:2]) in _DIVIDED else 2])


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return each set of nodes that reach one another."""
    reached = {node: _reach(graph, node) for node in graph}
    groups = {
        frozenset(other for other in found if node in reached.get(other, ()))
        for node, found in reached.items()
        if node in found
    }
    return sorted(sorted(group) for group in groups if group)


def _reach(graph: Mapping[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [*graph[start]]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += graph.get(node, ())
    return found
