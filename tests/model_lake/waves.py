"""Seeds in waves: the histories that run at the same time, and the keys that are theirs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from tests.model_lake.audit import Place
from tests.model_lake.history import KEYS, History, history

SIZE = 50


@dataclass(frozen=True, slots=True)
class Wave:
    """Histories that run side by side, under the disturbance of this number."""

    number: int
    histories: tuple[History, ...]


def waves(first: int, count: int) -> list[Wave]:
    """The waves of so many seeds. A seed's wave does not depend on where the counting began.

    The first seed of a wave has the truncated table: nobody else may write what it truncates.
    """
    seeds = range(first, first + count)
    return [
        Wave(number, tuple(history(seed, truncates=seed % SIZE == 0) for seed in group))
        for number, group in groupby(seeds, key=lambda seed: seed // SIZE)
    ]


def places(histories: Iterable[History]) -> dict[Place, History]:
    """Every key that a history may have written, with that history."""
    return {
        (shape.name, shape.key_text(one.seed, key)): one
        for one in histories
        for shape in one.shapes
        for key in KEYS
    }
