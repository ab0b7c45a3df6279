"""The traffic of the race: some rows change again and again, most of them hardly ever."""

from __future__ import annotations

import random
from collections.abc import Sequence

from benchmarks.traffic import DELETES, Keys, Traffic
from cdclake.plan import Table

# Scatters the keys that Zipf favours over the whole table.
_SCATTER = 2_654_435_761
_SEED = 1


class ZipfTraffic(Traffic):
    """Traffic that draws the rows to update by Zipf's law, from the rows that a table opens with.

    `rows` is how many these are. Every draw comes from one seed.
    """

    def __init__(self, dsn: str, tables: Sequence[Table], rows: int) -> None:
        super().__init__(dsn, tables)
        self._rows, self._random = rows, random.Random(_SEED)

    def _draw(self, keys: Keys, count: int) -> list[int]:
        drawn: set[int] = set()
        while len(drawn) < count:
            # Zipf with exponent 1: the rank's logarithm is uniform.
            rank = int(self._rows ** self._random.random())
            key = 1 + rank * _SCATTER % self._rows
            if key >= keys.first + DELETES:
                drawn.add(key)
            elif keys.first > self._rows // 2:  # half of them are deleted: any row will do
                drawn.add(self._random.randrange(keys.first + DELETES, keys.following))
        return sorted(drawn)
