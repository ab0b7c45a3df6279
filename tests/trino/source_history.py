"""A source whose every state of each key is kept, to judge what a reader saw and when."""

from __future__ import annotations

import random
import time
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

KEYS = range(40)
_IDS = 20  # of a composite key: (key % _IDS, key // _IDS)
_KEPT_OUT_OF_ROW = 4000  # characters of random text that PostgreSQL stores as a TOAST value
_MARK = 8  # characters at the start of a note: the version that wrote it

# A key's row, without the rest of its note; None while it is deleted.
Seen = tuple[int, str] | None
Read = tuple[int, int, str]  # key, version, start of the note


@dataclass
class KeyHistory:
    """The states of one key, in order; `of_transaction` has their indexes.

    `committed` has the time of each state's commit, as far as it is over (`time.monotonic`).
    """

    states: list[Seen] = field(default_factory=lambda: [None])
    of_transaction: dict[int, int] = field(default_factory=dict)
    committed: list[float] = field(default_factory=lambda: [0.0])

    def add(self, transaction: int, state: Seen) -> None:
        self.states.append(state)
        self.of_transaction[transaction] = len(self.states) - 1

    def first_possible(self, transaction: int | None, newer_than: float) -> int:
        """Return the index of the oldest state that a read may show.

        It is the one that the changelog had, or the last that was committed at that time.
        """
        known = 0 if transaction is None else self.of_transaction[transaction]
        return max(known, bisect_right(self.committed, newer_than) - 1)


class WatchedTable:
    """One table of the source, changed at random, one key or a pair of keys at a time."""

    def __init__(
        self, name: str, seed: int, *, is_toasted: bool, is_composite: bool = False
    ) -> None:
        self.name = name
        self._is_composite = is_composite
        self.keys = {key: KeyHistory() for key in KEYS}
        self._random = random.Random(f"{name} {seed}")
        self._size = _KEPT_OUT_OF_ROW if is_toasted else 0
        self._version = 0

    @property
    def definition(self) -> str:
        keys = "id bigint, part int" if self._is_composite else "id bigint"
        primary = "id, part" if self._is_composite else "id"
        return (
            f"CREATE TABLE {self.name} ({keys}, version bigint NOT NULL,"
            f" note text STORAGE EXTERNAL, PRIMARY KEY ({primary}))"
        )

    @property
    def _key(self) -> str:
        return f"id + {_IDS} * part" if self._is_composite else "id"

    def _values(self, key: int) -> tuple[int, ...]:
        return (key % _IDS, key // _IDS) if self._is_composite else (key,)

    def query(self, database: str) -> str:
        """A SELECT of what is read of each row, from `<t>_current`."""
        return (
            f"SELECT {self._key}, version, substr(note, 1, {_MARK})"
            f' FROM "{database}"."{self.name}_current"'
        )

    def newest_query(self, database: str) -> str:
        """A SELECT of each key's newest event in the changelog: table, key and transaction."""
        return (
            f"SELECT '{self.name}', {self._key}, max_by(cdc_tx_id, cdc_position)"
            f' FROM "{database}"."{self.name}_changes" GROUP BY {self._key}'
        )

    def change(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        """Commit one change; the history has it before its commit, so before any reader."""
        self._version += 1
        key = self._random.choice(KEYS)
        row = self.keys[key].states[-1]
        with connection.transaction():
            [transaction] = connection.execute("SELECT pg_current_xact_id()::text").fetchone() or ()
            states = self._changed(connection, key, row)
            for changed, state in states.items():
                self.keys[changed].add(int(transaction), state)
        for changed in states:
            self.keys[changed].committed.append(time.monotonic())

    def _changed(
        self, connection: psycopg.Connection[tuple[Any, ...]], key: int, row: Seen
    ) -> Mapping[int, Seen]:
        version, noted = self._version, f"{self._version:0{_MARK}}"
        note = noted + "".join(self._random.choices("abcdefghijklmnop", k=self._size))
        chance = self._random.random()
        free = [other for other in KEYS if self.keys[other].states[-1] is None and other != key]
        if row is None:
            self._insert(connection, key, version, note)
            return {key: (version, noted)}
        if chance < 0.15:
            self._run(connection, f"DELETE FROM {self.name}", key)
            return {key: None}
        if chance < 0.25 and free:
            self._update(connection, key, version=version, note=note, moved_to=free[0])
            return {key: None, free[0]: (version, noted)}
        if chance < 0.45:
            self._update(connection, key, version=version, note=note)
            return {key: (version, noted)}
        self._update(connection, key, version=version)
        return {key: (version, row[1])}

    def _insert(
        self, connection: psycopg.Connection[tuple[Any, ...]], key: int, version: int, note: str
    ) -> None:
        values = (*self._values(key), version, note)
        places = ", ".join(["%s"] * len(values))
        connection.execute(f"INSERT INTO {self.name} VALUES ({places})".encode(), values)

    def _update(
        self,
        connection: psycopg.Connection[tuple[Any, ...]],
        key: int,
        *,
        moved_to: int | None = None,
        **values: object,
    ) -> None:
        moved = {} if moved_to is None else self._named(moved_to)
        changed = {**moved, **values}
        assigned = ", ".join(f"{name} = %s" for name in changed)
        self._run(connection, f"UPDATE {self.name} SET {assigned}", key, *changed.values())

    def _run(
        self,
        connection: psycopg.Connection[tuple[Any, ...]],
        statement: str,
        key: int,
        *values: object,
    ) -> None:
        names = self._named(key)
        where = " AND ".join(f"{name} = %s" for name in names)
        connection.execute(f"{statement} WHERE {where}".encode(), (*values, *names.values()))

    def _named(self, key: int) -> dict[str, int]:
        return dict(zip(("id", "part"), self._values(key), strict=False))

    def faults(
        self, known: Mapping[int, int], rows: Sequence[Read], *, newer_than: float
    ) -> list[str]:
        """What the source never had between the changelog as known before the read, and now.

        `known` has the transaction of each key's newest event in the changelog before the read.
        States that were replaced before the time `newer_than` are faults too.
        """
        found, seen = [], {key: (version, mark) for key, version, mark in rows}
        if len(seen) != len(rows):
            found.append(f"{self.name}: a key twice among {rows}")
        for key, history in self.keys.items():
            first = history.first_possible(known.get(key), newer_than)
            possible = list(history.states)[first:]
            if seen.get(key) not in possible:
                found.append(f"{self.name}: key {key} is {seen.get(key)}, not one of {possible}")
        return found
