"""A table's changes, as its database would have made them: every draw comes from one seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Keys = Literal["zipf", "uniform"]

# Multiplying by it scatters the keys that Zipf favours over the whole table: it divides no count of
# rows that anybody would ask for.
_SCATTER = 2_654_435_761
_LSN_STEP = 64


@dataclass(frozen=True, slots=True)
class Change:
    """One event: operation `c`, `u` or `d`, key, its number from 0, and what it is all about."""

    op: str
    key: int
    number: int
    draw: int  # 32 random bits, from which the row's values are made

    @property
    def lsn(self) -> int:
        """Where it stands in the source's log; each is a transaction of its own."""
        return (self.number + 2) * _LSN_STEP

    @property
    def prev_commit_lsn(self) -> int:
        """Where the transaction before it was committed."""
        return self.lsn - _LSN_STEP


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """How many of a hundred changes are inserts and updates; the rest are deletes."""

    inserts: int = 70
    updates: int = 25


MIXED, INSERTS_ONLY = Mix(), Mix(inserts=100, updates=0)


@dataclass
class History:
    """Goes on from a table of `rows` rows with the keys 1 to `rows`."""

    rows: int
    keys: Keys
    mix: Mix = MIXED
    seed: int = 1

    def __post_init__(self) -> None:
        self._random = random.Random(f"{self.seed} {self.keys} {self.rows}")
        self._dead: set[int] = set()
        self._newest = self.rows
        self._number = 0

    def changes(self, count: int) -> Iterator[Change]:
        """The next changes. Never an update of a row that is deleted: it is inserted again."""
        for _ in range(count):
            op, key = self._next()
            yield Change(op, key, self._number, self._random.getrandbits(32))
            self._number += 1

    def _next(self) -> tuple[str, int]:
        percent = self._random.random() * 100
        if percent < self.mix.inserts:
            self._newest += 1
            return "c", self._newest
        key = self._known_key()
        if key in self._dead:
            self._dead.remove(key)
            return "c", key
        if percent < self.mix.inserts + self.mix.updates:
            return "u", key
        self._dead.add(key)
        return "d", key

    def _known_key(self) -> int:
        drawn = self._random.random()
        if self.keys == "uniform":
            return 1 + int(drawn * self.rows)
        # Zipf with exponent 1: the rank's logarithm is uniform.
        rank = int(self.rows**drawn)
        return 1 + rank * _SCATTER % self.rows
