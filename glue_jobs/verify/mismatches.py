"""The keys of one table that differed once, and what became of each in the rounds after.

They live in a temporary file of SQLite's, not in memory: under heavy writes they are many. Of a row
only a digest is kept, equal on both sides for equal rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from cdclake.verify.compare import ABSENT

Place = tuple[int, str]
Digest = tuple[int, str, str]  # hash, key, and the digest of the row

_TABLE = f"""
CREATE TABLE candidates (
  hash INTEGER NOT NULL, key TEXT NOT NULL,
  source TEXT NOT NULL DEFAULT '{ABSENT}', lake TEXT NOT NULL DEFAULT '{ABSENT}',
  history TEXT NOT NULL DEFAULT '', seen TEXT, verdict TEXT,
  PRIMARY KEY (hash, key)) WITHOUT ROWID
"""
_OPEN = "verdict IS NULL"
_BATCH_KEYS = 1000


class Mismatches:
    """The keys to look at again."""

    def __init__(self, places: Iterable[Place]) -> None:
        # An empty name is a private file that SQLite removes; the pass may be in another thread.
        self._file = sqlite3.connect("", isolation_level=None)
        self._file.execute(_TABLE)
        self._file.execute("BEGIN")
        self._file.executemany("INSERT OR IGNORE INTO candidates (hash, key) VALUES (?, ?)", places)
        self._file.execute("COMMIT")

    def __len__(self) -> int:
        """How many are not decided yet."""
        return int(self._one(f"SELECT count(*) FROM candidates WHERE {_OPEN}"))

    def batches(self) -> Iterator[list[Place]]:
        """The undecided, in order, some at a time."""
        last: Place = (-1, "")
        while batch := self._file.execute(
            f"SELECT hash, key FROM candidates WHERE {_OPEN} AND (hash, key) > (?, ?) "
            f"ORDER BY hash, key LIMIT {_BATCH_KEYS}",
            last,
        ).fetchall():
            yield batch
            last = batch[-1]

    def begin_round(self) -> None:
        """Nothing is known of any row."""
        self._file.execute(f"UPDATE candidates SET history = '' WHERE {_OPEN}")

    def look_at_source(self, rows: Iterable[Digest]) -> None:
        """Note what the source holds now, beside what it history earlier in the round."""
        self._look("source", rows)
        state = "'<' || source || '>'"
        new = f"{_OPEN} AND instr(history, {state}) = 0"
        self._file.execute(f"UPDATE candidates SET history = history || {state} WHERE {new}")

    def look_at_lake(self, rows: Iterable[Digest]) -> None:
        """Note what the lake holds, once in a round, with a look at the source to follow."""
        self._look("lake", rows)

    def _look(self, side: str, rows: Iterable[Digest]) -> None:
        """Digests by hash and key; those of one key add up, other keys do not matter."""
        self._file.execute("BEGIN")
        self._file.execute(f"UPDATE candidates SET {side} = ? WHERE {_OPEN}", (ABSENT,))
        self._file.executemany(
            f"UPDATE candidates SET {side} = {side} || ? WHERE hash = ? AND key = ? AND {_OPEN}",
            ((digest, hash_, key) for hash_, key, digest in rows),
        )
        self._file.execute("COMMIT")

    def decide(self, *, last: bool) -> None:
        """Decide what can be decided from this round.

        The lake may show any state that the source was in since the round began. Where it shows
        none, and a second round finds the same, it is wrong; what never stands still is unsettled.
        """
        shown = "instr(history, '<' || lake || '>') > 0"
        self._file.execute(f"DELETE FROM candidates WHERE {_OPEN} AND {shown}")
        found, still = "source || '/' || lake", "history = '<' || source || '>'"
        # All digests are equally long, so the longer side has more rows of the key.
        kind = (
            "CASE WHEN length(lake) > length(source) THEN 'extra'"
            " WHEN length(lake) < length(source) THEN 'missing' ELSE 'different' END"
        )
        for change in (
            f"verdict = {kind} WHERE {_OPEN} AND {still} AND seen = {found}",
            f"seen = CASE WHEN {still} THEN {found} END WHERE {_OPEN}",
        ):
            self._file.execute(f"UPDATE candidates SET {change}")
        if last:
            self._file.execute(f"UPDATE candidates SET verdict = 'unsettled' WHERE {_OPEN}")

    def count(self, verdict: str) -> int:
        """How many keys were so decided."""
        return int(self._one("SELECT count(*) FROM candidates WHERE verdict = ?", verdict))

    def examples(self, limit: int) -> list[tuple[int, str, str]]:
        """Hash, key and verdict of some keys, real differences before unsettled ones."""
        return self._file.execute(
            "SELECT hash, key, verdict FROM candidates WHERE verdict IS NOT NULL "
            "ORDER BY verdict = 'unsettled', hash LIMIT ?",
            (limit,),
        ).fetchall()

    def close(self) -> None:
        """Remove the file."""
        self._file.close()

    def _one(self, query: str, *parameters: str) -> int:
        row = self._file.execute(query, parameters).fetchone()
        return int(row[0])
