"""Examples of the pipeline file's keys, from complete files that `cdclake validate` accepts."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from cdclake.config.yaml_reader import read_document
from cdclake.places import RESOURCES

FOLDER = RESOURCES / "pipelines"
_WIDTH = 90


@dataclass(frozen=True, slots=True)
class KeyExample:
    """Value of a key in one of the files, by the place that it has there."""

    file: Path
    place: tuple[str | int, ...]
    value: Any

    def inline(self) -> str:
        """Return the last key and its value on one line."""
        named = next(part for part in reversed(self.place) if isinstance(part, str))
        return _dumped({named: self.value}, is_flow=True)[1:-1]

    def block(self) -> str:
        """Return the value with the keys above it, as lines of a pipeline file."""
        nested = self.value
        for part in reversed(self.place):
            nested = [nested] if isinstance(part, int) else {part: nested}
        return _dumped(nested, is_flow=False)


def example_of(path: str) -> KeyExample | None:
    """Return the shortest example of a key, by its path in the reference; None if there is none."""
    parts = path.replace("[]", ".[]").split(".")
    found = [
        KeyExample(file, place, value)
        for file, values in _files()
        for place, value in _places(values, parts)
    ]
    return min(found, key=lambda each: len(json.dumps(each.value)), default=None)


@cache
def _files() -> tuple[tuple[Path, dict[str, Any]], ...]:
    """Return the files' values; the first of them count if several examples are as short."""
    files = [*sorted((FOLDER / "reference").glob("*.yaml")), *sorted(FOLDER.glob("*.yaml"))]
    return tuple((file, read_document(file).values) for file in files)


def _places(
    value: Any, parts: list[str], above: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield each place below `value` that a path names, with its value."""
    if not parts:
        yield above, value
        return
    first, *rest = parts
    if first == "[]":
        for index, item in enumerate(value if isinstance(value, list) else ()):
            yield from _places(item, rest, (*above, index))
        return
    for key, below in value.items() if isinstance(value, dict) else ():
        if first in ("NAME", key):
            yield from _places(below, rest, (*above, key))


def _dumped(value: Any, *, is_flow: bool) -> str:
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = is_flow
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 4096 if is_flow else _WIDTH
    text = io.StringIO()
    yaml.dump(value, text)
    return text.getvalue().rstrip("\n")
