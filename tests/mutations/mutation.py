"""One way to break the engine."""

from __future__ import annotations

from dataclasses import dataclass

Patch = tuple[str, str, str]  # file, its text, what stands there instead; every occurrence


@dataclass(frozen=True, slots=True)
class Mutation:
    """One way to break the engine."""

    name: str
    tests: tuple[str, ...]  # pytest's arguments
    patches: tuple[Patch, ...]
