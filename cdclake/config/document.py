"""A YAML file as plain values that remember where each of them stands.

Only what JSON can hold comes out: no tags, no merge keys, no dates. Keys are always text, so that
a column may be called `null` or `1`. Whatever is wrong with the YAML itself is a `Problem`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cdclake.config.problems import Problem

Location = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Span:
    """Where a value stands, and where its key does; (line, column) counted from 1."""

    key: tuple[int, int]
    value: tuple[int, int]
    empty: bool = False  # nothing is written there, which YAML reads as null


@dataclass(frozen=True, slots=True)
class Document:
    """One file: its values, their places, and what was wrong with the YAML."""

    values: dict[str, Any]
    spans: Mapping[Location, Span]
    problems: tuple[Problem, ...] = field(default=())

    def get(self, *location: str | int) -> Any:
        """The value there; None where there is nothing of the kind."""
        here: Any = self.values
        for part in location:
            try:
                here = here[part]
            except (KeyError, IndexError, TypeError):
                return None
        return here

    def mapping(self, *location: str | int) -> dict[str, Any]:
        """The mapping there; empty where there is none."""
        value = self.get(*location)
        return value if isinstance(value, dict) else {}

    def place(self, location: Location) -> tuple[int, int]:
        """Line and column for a message about `location`, or about the nearest that is written.

        A scalar's own place; a mapping's or list's key, since its first line says nothing.
        """
        while location and location not in self.spans:
            location = location[:-1]
        span = self.spans.get(location)
        if span is None:
            return 1, 1
        by_key = span.empty or isinstance(self.get(*location), dict | list)
        return span.key if by_key else span.value

    def problem(self, location: Location, message: str, remedy: str) -> Problem:
        """A problem with the value at `location`."""
        return Problem(*self.place(location), message, remedy)

    def key_problem(self, location: Location, message: str, remedy: str) -> Problem:
        """A problem with the key at `location`, not with what it holds."""
        span = self.spans.get(location)
        return Problem(*(span.key if span else self.place(location)), message, remedy)

    def overlaid(self, environment: str) -> Document:
        """This document with `environments.<environment>` merged over it, mapping by mapping.

        Places come along: a mistake in an overlay is reported where the overlay has it.
        """
        root = ("environments", environment)
        overlay = self.mapping(*root)
        places = {
            location[2:]: span
            for location, span in self.spans.items()
            if location[:2] == root and location != root
        }
        return Document(_merge(self.values, overlay), {**self.spans, **places}, self.problems)


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        below = base.get(key)
        if isinstance(below, dict) and isinstance(value, dict):
            value = _merge(below, value)
        merged[key] = value
    return merged
