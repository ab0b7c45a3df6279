"""Journal of the records put with Direct PUT that are not delivered yet, in one SQLite file.

Records survive a crash of the process or the machine once `append` has returned: each commit is
synced. The records of a stream keep their order and their offsets, and no offset is used twice.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from cdclake.local.firehose.records import Record
from cdclake.local.process.home import Home

_SCHEMA = """
create table if not exists record (
    offset integer primary key autoincrement, stream text not null, arrived_ms integer not null,
    data blob not null);
create table if not exists stream (name text primary key, acknowledged integer not null);
create index if not exists of_stream on record (stream, offset);
create table if not exists dropped (stream text primary key, records integer not null);
"""
_COUNT = """
insert into stream values (?, ?)
on conflict (name) do update set acknowledged = acknowledged + excluded.acknowledged
"""
_DROP = """
insert into dropped values (?, ?)
on conflict (stream) do update set records = records + excluded.records
"""
_POLL_TIMEOUT_S = 0.2
_READ_BYTES = 16 << 20  # per read; a record has up to a megabyte


def journal_file(home: Home) -> Path:
    """Return the path of a lake's journal."""
    return home.data("firehose") / "direct_put.db"


class Journal:
    """One file for all streams; safe to use from any thread and any process."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.execute("pragma journal_mode=wal")
        self._connection.execute("pragma synchronous=full")
        self._connection.executescript(_SCHEMA)
        self._lock = threading.Condition()

    def append(self, stream: str, records: Sequence[bytes]) -> list[int]:
        """Store all records or none, and return their offsets."""
        now_ms = time.time_ns() // 1_000_000
        with self._lock:
            with self._transaction():
                offsets = [self._insert(stream, now_ms, data) for data in records]
                self._connection.execute(_COUNT, (stream, len(records)))
            self._lock.notify_all()
        return offsets

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("begin immediate")
        try:
            yield
            self._connection.execute("commit")
        except BaseException:
            self._connection.execute("rollback")
            raise

    def _insert(self, stream: str, arrived_ms: int, data: bytes) -> int:
        made = self._connection.execute(
            "insert into record (stream, arrived_ms, data) values (?, ?, ?)",
            (stream, arrived_ms, data),
        )
        assert made.lastrowid is not None  # set by every insert
        return made.lastrowid

    def read(self, stream: str, first: int, most: int) -> list[Record]:
        """Return the stream's next records, at most `most`, from offset `first` on."""
        found: list[Record] = []
        room = _READ_BYTES
        with self._lock:
            rows = self._connection.execute(
                "select offset, arrived_ms, data from record where stream = ? and offset >= ?"
                " order by offset limit ?",
                (stream, first, most),
            )
            for offset, arrived_ms, data in rows:
                found.append(Record(0, offset, arrived_ms, data))
                room -= len(data)
                if room < 0:
                    break
        return found

    def wait(self) -> None:
        """Wait for an append, for a fraction of a second at most."""
        with self._lock:
            self._lock.wait(_POLL_TIMEOUT_S)

    def forget(self, stream: str, end: int, dropped: int = 0) -> None:
        """Remove the delivered records before offset `end`; `dropped` of them have no row."""
        with self._lock, self._transaction():
            self._connection.execute(
                "delete from record where stream = ? and offset < ?", (stream, end)
            )
            self._connection.execute(_DROP, (stream, dropped))

    def waiting(self, stream: str) -> int:
        """Count the records of the stream that are not delivered."""
        with self._lock:
            row = self._connection.execute(
                "select count(*) from record where stream = ?", (stream,)
            ).fetchone()
        return int(row[0])

    def acknowledged(self, stream: str) -> int:
        """Count all records of the stream that were ever appended."""
        return self._number("select acknowledged from stream where name = ?", stream)

    def dropped(self, stream: str) -> int:
        """Count all records of the stream that its function dropped."""
        return self._number("select records from dropped where stream = ?", stream)

    def _number(self, query: str, stream: str) -> int:
        with self._lock:
            row = self._connection.execute(query, (stream,)).fetchone()
        return 0 if row is None else int(row[0])


class JournalSource:
    """Source of one stream's records, starting with the oldest undelivered one."""

    def __init__(self, journal: Journal, stream: str) -> None:
        self._journal, self._stream = journal, stream
        self._next = 0

    def read(self, most: int) -> Sequence[Record]:
        """Return the next records, if any arrive within a fraction of a second."""
        found = self._journal.read(self._stream, self._next, most)
        if not found:
            self._journal.wait()
            found = self._journal.read(self._stream, self._next, most)
        if found:
            self._next = found[-1].offset + 1
        return found

    def commit(self, offsets: Mapping[int, int], dropped: int = 0) -> None:
        """Remove the records before the offset, which are delivered."""
        self._journal.forget(self._stream, offsets[0], dropped)
