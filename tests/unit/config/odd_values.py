"""Pipeline files with one value or key replaced, at any place of the shipped pipelines."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from cdclake.config.document import Document, Location
from cdclake.config.yaml_reader import read_document

FOLDER = Path(__file__).parents[3] / "pipelines"


@cache
def places() -> tuple[tuple[Document, Location], ...]:
    """Each place below the top of each shipped pipeline."""
    documents = [read_document(file) for file in sorted(FOLDER.rglob("*.yaml"))]
    return tuple((each, at) for each in documents for at in _below((), each.values) if at)


def _below(at: Location, value: Any) -> Iterator[Location]:
    yield at
    if isinstance(value, dict | list):
        for key, below in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _below((*at, key), below)


def with_value(document: Document, at: Location, value: Any) -> Document:
    """The document with this value at the place."""
    values = copy.deepcopy(document.values)
    _holder(values, at)[at[-1]] = value
    return Document(values, document.spans)


def with_key(document: Document, at: Location, key: str) -> Document:
    """The document with this key instead of the one at the place, as the last of its mapping."""
    values = copy.deepcopy(document.values)
    holder = _holder(values, at)
    holder[key] = holder.pop(at[-1])
    return Document(values, document.spans)


def _holder(values: Any, at: Location) -> Any:
    for part in at[:-1]:
        values = values[part]
    return values
