"""A source whose every state of each key is kept, to judge what a reader saw and when."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

KEYS = range(40)
_KEPT_OUT_OF_ROW = 4000  # characters of random text that PostgreSQL stores as a TOAST value
_MARK = 8  # characters at the start of a note: the version that wrote it

# A key's row, without the rest of its note; None while it is deleted.
Seen = tuple[int, str] | None
Read = tuple[int, int, str]  # key, version, start of the note


@dataclass
class KeyHistory:
    """The states of one key, in order; `of_transaction` has their indexes."""

    states: list[Seen] = field(default_factory=lambda: [None])
    of_transaction: dict[int, int] = field(default_factory=dict)

    def add(self, transaction: int, state: Seen) -> None:
        self.states.append(state)
        self.of_transaction[transaction] = len(self.states) - 1


class WatchedTable:
    """One table of the source, changed at random, one key or a pair of keys at a time."""

    def __init__(self, name: str, seed: int, *, is_toasted: bool) -> None:
        self.name = name
        self.keys = {key: KeyHistory() for key in KEYS}
        self._random = random.Random(f"{name} {seed}")
        self._size = _KEPT_OUT_OF_ROW if is_toasted else 0
        self._version = 0

    @property
    def definition(self) -> str:
        return (
            f"CREATE TABLE {self.name} (id bigint PRIMARY KEY, version bigint NOT NULL,"
            " note text STORAGE EXTERNAL)"
        )

    def query(self, database: str) -> str:
        """A SELECT of what is read of each row, from `<t>_current`."""
        return (
            f'SELECT id, version, substr(note, 1, {_MARK}) FROM "{database}"."{self.name}_current"'
        )

    def newest_query(self, database: str) -> str:
        """A SELECT of each key's newest event in the changelog: table, key and transaction."""
        return (
            f"SELECT '{self.name}', id, max_by(cdc_tx_id, cdc_position)"
            f' FROM "{database}"."{self.name}_changes" GROUP BY id'
        )

    def change(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        """Commit one change; the history has it before its commit, so before any reader."""
        self._version += 1
        key = self._random.choice(KEYS)
        row = self.keys[key].states[-1]
        with connection.transaction():
            [transaction] = connection.execute("SELECT pg_current_xact_id()::text").fetchone() or ()
            for changed, state in self._changed(connection, key, row).items():
                self.keys[changed].add(int(transaction), state)

    def _changed(
        self, connection: psycopg.Connection[tuple[Any, ...]], key: int, row: Seen
    ) -> Mapping[int, Seen]:
        version, noted = self._version, f"{self._version:0{_MARK}}"
        note = noted + "".join(self._random.choices("abcdefghijklmnop", k=self._size))
        chance = self._random.random()
        free = [other for other in KEYS if self.keys[other].states[-1] is None and other != key]
        if row is None:
            connection.execute(f"INSERT INTO {self.name} VALUES (%s, %s, %s)".encode(),
                               (key, version, note))  # fmt: skip
            return {key: (version, noted)}
        if chance < 0.15:
            connection.execute(f"DELETE FROM {self.name} WHERE id = %s".encode(), (key,))
            return {key: None}
        if chance < 0.25 and free:
            connection.execute(
                f"UPDATE {self.name} SET id = %s, version = %s, note = %s WHERE id = %s".encode(),
                (free[0], version, note, key),
            )
            return {key: None, free[0]: (version, noted)}
        if chance < 0.45:
            connection.execute(
                f"UPDATE {self.name} SET version = %s, note = %s WHERE id = %s".encode(),
                (version, note, key),
            )
            return {key: (version, noted)}
        connection.execute(f"UPDATE {self.name} SET version = %s WHERE id = %s".encode(),
                           (version, key))  # fmt: skip
        return {key: (version, row[1])}

    def faults(self, known: Mapping[int, int], rows: Sequence[Read]) -> list[str]:
        """What the source never had between the changelog as known before the read, and now.

        `known` has the transaction of each key's newest event in the changelog before the read.
        """
        found, seen = [], {key: (version, mark) for key, version, mark in rows}
        if len(seen) != len(rows):
            found.append(f"{self.name}: a key twice among {rows}")
        for key, history in self.keys.items():
            first = history.of_transaction[known[key]] if key in known else 0
            possible = list(history.states)[first:]
            if seen.get(key) not in possible:
                found.append(f"{self.name}: key {key} is {seen.get(key)}, not one of {possible}")
        return found
