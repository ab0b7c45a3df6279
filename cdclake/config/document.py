"""A YAML file as plain values, each with its place in the file.

The values are those that JSON can hold: no tags, no merge keys, no dates. Keys are always text, so
that a column may be called `null` or `1`. Every mistake in the YAML itself is a `Problem`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cdclake.config.problems import Problem

Location = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """Places of a value and its key, as (line, column) counted from 1."""

    key: tuple[int, int]
    value: tuple[int, int]
    empty: bool = False  # the file has no value here, which YAML reads as null


@dataclass(frozen=True, slots=True)
class Document:
    """Values of one file, their places, and the mistakes in the YAML."""

    values: dict[str, Any]
    spans: Mapping[Location, Span]
    problems: tuple[Problem, ...] = field(default=())

    def get(self, *location: str | int) -> Any:
        """Return the value at `location`; None if there is none."""
        here: Any = self.values
        for part in location:
            try:
                here = here[part]
            except (KeyError, IndexError, TypeError):
                return None
        return here

    def mapping(self, *location: str | int) -> dict[str, Any]:
        """Return the mapping at `location`; empty if there is none."""
        value = self.get(*location)
        return value if isinstance(value, dict) else {}

    def place(self, location: Location) -> tuple[int, int]:
        """Return line and column of `location`, or of its nearest ancestor in the file.

        For a scalar its own place; for a mapping or list that of its key, since its first line
        shows nothing.
        """
        while location and location not in self.spans:
            location = location[:-1]
        span = self.spans.get(location)
        if span is None:
            return 1, 1
        by_key = span.empty or isinstance(self.get(*location), dict | list)
        return span.key if by_key else span.value

    def problem(self, location: Location, message: str, remedy: str) -> Problem:
        """Return a problem with the value at `location`."""
        return Problem(*self.place(location), message, remedy)

    def key_problem(self, location: Location, message: str, remedy: str) -> Problem:
        """Return a problem with the key at `location`, not with its value."""
        span = self.spans.get(location)
        return Problem(*(span.key if span else self.place(location)), message, remedy)

    def places_below(self, root: Location) -> set[tuple[int, int]]:
        """Return line and column of every key and value below `root`."""
        below = (span for location, span in self.spans.items() if location[: len(root)] == root)
        return {place for span in below for place in (span.key, span.value)}

    def overlaid(self, environment: str) -> Document:
        """Return this document with `environments.<environment>` merged over it, key by key.

        Places are merged too: a mistake in an overlay is reported at its place in the overlay.
        """
        root = ("environments", environment)
        overlay = self.mapping(*root)
        places = {
            location[2:]: span
            for location, span in self.spans.items()
            if location[:2] == root and location != root
        }
        return Document(merge(self.values, overlay), {**self.spans, **places}, self.problems)


def merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Return `base` with `over` merged over it, key by key; lists are replaced."""
    merged = dict(base)
    for key, value in over.items():
        below = base.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            value = merge(below, value)
        merged[key] = value
    return merged
