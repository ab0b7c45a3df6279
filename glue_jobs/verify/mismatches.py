"""Keys of one table that differed at least once, and their state in the following rounds.

They are in a temporary SQLite file rather than in memory, since heavy writes can cause many. Of
each row only a digest is kept, which is equal on both sides for equal rows.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator

from cdclake.jobs.verify.compared_rows import Place
from cdclake.verify.compare import ABSENT

Digest = tuple[int, str, str]  # hash, key, and the digest of the row

_TABLE = f"""
CREATE TABLE candidates (
  hash INTEGER NOT NULL, key TEXT NOT NULL,
  source TEXT NOT NULL DEFAULT '{ABSENT}', lake TEXT NOT NULL DEFAULT '{ABSENT}',
  history TEXT NOT NULL DEFAULT '', accepted TEXT NOT NULL DEFAULT '{ABSENT}',
  seen TEXT, waits_for TEXT, verdict TEXT,
  PRIMARY KEY (hash, key)) WITHOUT ROWID
"""
_OPEN = "verdict IS NULL"
_DIFFERS = "verdict IN ('missing', 'extra', 'different')"
_BATCH_KEYS = 1000


class Mismatches:
    """Keys to compare again."""

    def __init__(self, places: Iterable[Place]) -> None:
        # An empty name creates a private file that SQLite removes.
        self._file = sqlite3.connect("", isolation_level=None)
        self._file.execute(_TABLE)
        self._file.execute("BEGIN")
        self._file.executemany("INSERT OR IGNORE INTO candidates (hash, key) VALUES (?, ?)", places)
        self._file.execute("COMMIT")

    def __len__(self) -> int:
        """Return the number of undecided keys."""
        return int(self._one(f"SELECT count(*) FROM candidates WHERE {_OPEN}"))

    def batches(self) -> Iterator[list[Place]]:
        """Yield the undecided keys in order, in batches."""
        last: Place = (-1, "")
        while batch := self._file.execute(
            f"SELECT hash, key FROM candidates WHERE {_OPEN} AND (hash, key) > (?, ?) "
            f"ORDER BY hash, key LIMIT {_BATCH_KEYS}",
            last,
        ).fetchall():
            yield batch
            last = batch[-1]

    def begin_round(self) -> None:
        """Discard the source's history of the previous round."""
        self._file.execute(f"UPDATE candidates SET history = '' WHERE {_OPEN}")

    def look_at_source(self, rows: Iterable[Digest]) -> None:
        """Record the source's current rows, in addition to earlier ones of the round."""
        self._look("source", rows)
        state = "'<' || source || '>'"
        new = f"{_OPEN} AND instr(history, {state}) = 0"
        self._file.execute(f"UPDATE candidates SET history = history || {state} WHERE {new}")

    def look_at_lake(self, rows: Iterable[Digest]) -> None:
        """Record the lake's rows, once per round; a look at the source must follow."""
        self._look("lake", rows)

    def note_incomplete(self, listed: Iterable[tuple[int, str, str]]) -> None:
        """Record that the lake's rows of these keys lack the value of the named column."""
        waits_for = "json_insert(coalesce(waits_for, '[]'), '$[#]', ?)"
        self._update(f"waits_for = {waits_for}", _OPEN, listed)

    def _look(self, side: str, rows: Iterable[Digest]) -> None:
        """Store digests by hash and key: concatenated for equal keys, ignored for other keys."""
        self._file.execute(f"UPDATE candidates SET {side} = ? WHERE {_OPEN}", (ABSENT,))
        self._update(f"{side} = {side} || ?", _OPEN, rows)

    def _update(self, change: str, where: str, rows: Iterable[tuple[int, str, str]]) -> None:
        """Change candidates by hash and key with the third value of each row, at once."""
        self._file.execute("BEGIN")
        self._file.executemany(
            f"UPDATE candidates SET {change} WHERE hash = ? AND key = ? AND {where}",
            ((value, hash_, key) for hash_, key, value in rows),
        )
        self._file.execute("COMMIT")

    def decide(self, *, last: bool) -> None:
        """Decide keys from the results of this round, where they are conclusive.

        The lake may show any state that the source has had since the round began. If it shows none
        of them, and a second round finds the same, the key differs. Keys that keep changing until
        the last round are unsettled.
        """
        shown = "instr(history, '<' || lake || '>') > 0"
        self._file.execute(f"DELETE FROM candidates WHERE {_OPEN} AND {shown}")
        found, still = "source || '/' || lake", "history = '<' || source || '>'"
        # All digests have the same length, so the longer side has more rows of the key.
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

    def lacking_values(self) -> list[tuple[int, str, frozenset[str]]]:
        """Return hash, key and names of columns of the different keys that lacked their values."""
        found = self._file.execute(
            "SELECT hash, key, waits_for FROM candidates"
            " WHERE verdict = 'different' AND waits_for IS NOT NULL"
        )
        return [(hash_, key, frozenset(json.loads(names))) for hash_, key, names in found]

    def mark_incomplete(self, places: Iterable[Place]) -> None:
        """Mark keys that differ only in the values that the lake's row lacks."""
        self._file.execute("BEGIN")
        self._file.executemany(
            "UPDATE candidates SET verdict = 'incomplete' WHERE hash = ? AND key = ?", places
        )
        self._file.execute("COMMIT")

    def differing_hashes(self) -> list[int]:
        """Return the hashes of the keys that differ."""
        rows = self._file.execute(f"SELECT DISTINCT hash FROM candidates WHERE {_DIFFERS}")
        return [hash_ for (hash_,) in rows.fetchall()]

    def look_at_accepted(self, rows: Iterable[Digest]) -> None:
        """Record the rows that the accepted events give to the differing keys."""
        self._update("accepted = accepted || ?", _DIFFERS, rows)

    def mark_withheld(self, rows: Iterable[Digest]) -> None:
        """Mark the keys for which the source has one of these rows, and the lake the accepted one.

        Withheld events leave no row in the lake that the source does not have, so an extra one
        stays extra. `look_at_accepted` comes first.
        """
        self._file.execute("BEGIN")
        self._file.executemany(
            "UPDATE candidates SET verdict = 'withheld' WHERE hash = ? AND key = ?"
            " AND source = ? AND lake = accepted AND verdict IN ('missing', 'different')",
            rows,
        )
        self._file.execute("COMMIT")

    def count(self, verdict: str) -> int:
        """Return the number of keys with this verdict."""
        return int(self._one("SELECT count(*) FROM candidates WHERE verdict = ?", verdict))

    def examples(self, limit: int) -> list[tuple[int, str, str]]:
        """Return hash, key and verdict of some keys, differences first."""
        return self._file.execute(
            "SELECT hash, key, verdict FROM candidates WHERE verdict IS NOT NULL"
            f" ORDER BY NOT {_DIFFERS}, hash LIMIT ?",
            (limit,),
        ).fetchall()

    def close(self) -> None:
        """Remove the file."""
        self._file.close()

    def _one(self, query: str, *parameters: str) -> int:
        row = self._file.execute(query, parameters).fetchone()
        return int(row[0])
