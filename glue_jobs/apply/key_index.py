"""Index of the keys of data files: where in a file a key is.

A data file never changes, so its index is made once for each machine and kept on Spark's local disk
as long as the application runs, by the file's path and the columns of the key: the keys' sort
values in order, their row numbers, and what tells equal sort values apart. Indexes used longest ago
are removed beyond a limit, those in use beyond a larger one. Without room on the disk there is no
stored index, and the next task makes it again; nothing fails.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pandas.util import hash_array

log = logging.getLogger("cdclake.state")

MAX_BYTES = 8 << 30  # on disk
# An update uses the indexes of all files of its state. If they are beyond the limit, each update
# would make again what the one before it has removed: those of the last hour have more room.
IN_USE_SECONDS = 3600
USED_SHARE = 4  # a quarter of the disk; the rest is for shuffles
# Of a process. A state with more data files has all of them opened again in each batch; Linux maps
# some 65,000.
MAX_OPEN = 16_000
CONCURRENT_READS = 4  # each holds the keys of a file
INDEX_FOLDER = "cdclake-key-index"
_TEXT = "text"
_UUID_LENGTH, _DASHES = 36, [8, 13, 18, 23]
_HEX = np.full(256, 255, np.uint8)
_HEX[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)

Numbers = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class SortedKeys:
    """Keys as numbers to sort by, and what must be equal as well; None if the numbers are exact."""

    kind: str  # int, uuid or text
    first: Numbers
    second: Numbers | pa.Array | None

    def __len__(self) -> int:
        return len(self.first)

    def order(self) -> Numbers:
        """Return the row numbers in the order of the sort values."""
        return np.argsort(self.first, kind="stable")


@dataclass(frozen=True, slots=True)
class FileIndex:
    """Index of one data file, in the order of the sort values."""

    keys: SortedKeys
    rows: Numbers

    def look_up(self, wanted: SortedKeys, order: Numbers) -> tuple[Numbers, Numbers]:
        """Return pairs: number of a wanted key, and its row in the file.

        `order` is that of the wanted keys. A file has a key at most once, but may have dead rows.
        """
        mine, at = _equal_numbers(self.keys.first, wanted.first, order)
        if self.keys.second is not None and len(mine):
            keep = _equal(self.keys.second, at, wanted.second, mine)
            mine, at = mine[keep], at[keep]
        return mine, np.asarray(self.rows[at], np.int64)


def sorted_keys(columns: Sequence[pa.Array]) -> SortedKeys:
    """Return key columns of the state as numbers."""
    if len(columns) == 1 and pa.types.is_integer(columns[0].type):
        return SortedKeys("int", columns[0].to_numpy().astype(np.int64), None)
    if len(columns) == 1 and pa.types.is_string(columns[0].type):
        halves = _uuids(columns[0])
        if halves is not None:
            return SortedKeys("uuid", *halves)
    return _as_texts(columns)


def _as_texts(columns: Sequence[pa.Array]) -> SortedKeys:
    texts = _encoded(columns)
    hashes = hash_array(np.asarray(texts.to_pylist(), object), categorize=False)
    return SortedKeys(_TEXT, hashes, texts)


class WantedKeys:
    """Keys to look up in many files."""

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        self._columns = columns
        keys = sorted_keys(columns)
        self.kind = keys.kind
        self._forms = {keys.kind: (keys, keys.order())}

    def as_kind(self, kind: str) -> tuple[SortedKeys, Numbers]:
        """Return the keys as a file's index has them, and their order."""
        if kind not in self._forms:  # a file has UUIDs and other texts
            keys = _as_texts(self._columns)
            self._forms[kind] = keys, keys.order()
        return self._forms[kind]


def index_name(path: str, key: Sequence[str]) -> str:
    """Return the name of a data file's index by the columns of the key.

    A table with another key must not find its rows by the index of the earlier one.
    """
    return "\n".join((path, *key))


class KeyIndexes:
    """Indexes by `index_name`, those of this process in memory and all on disk."""

    def __init__(
        self,
        folder: Path | None = None,
        max_bytes: int = MAX_BYTES,
        max_used_bytes: int | None = None,
    ) -> None:
        self._folder = folder or _default_folder()
        self._max_bytes, self._max_used_bytes = max_bytes, max_used_bytes
        self._open: OrderedDict[tuple[str, str], FileIndex] = OrderedDict()

    def look_up(
        self, path: str, wanted: WantedKeys, read_keys: Callable[[], Sequence[pa.Array]]
    ) -> tuple[Numbers, Numbers]:
        """Return pairs: number of a wanted key, and its row in the data file.

        `read_keys` reads the file's key columns, if it has no index yet.
        """
        kind = wanted.kind
        index = self._known(path, kind) or self._known(path, _TEXT)
        if index is None:
            made = _indexed(_as_kind(kind, read_keys()))
            # The stored one is only mapped: made ones would hold all keys of a state in memory.
            index = self._known(path, made.keys.kind) if self._save(path, made) else None
            if index is None:
                index = made
                self._keep(path, made)
        return index.look_up(*wanted.as_kind(index.keys.kind))

    def make(
        self, paths: Sequence[str], kind: str, read_keys: Callable[[str], Sequence[pa.Array]]
    ) -> None:
        """Make the indexes of the data files that have none, some at a time.

        `read_keys` reads a file's key columns. It mostly waits for S3, which takes minutes for
        thousands of files one after the other. Without room on the disk none is made.
        """
        missing = [path for path in paths if not self._has(path, kind)]
        if len(missing) < 2:
            return

        def made(path: str) -> bool:
            return self._save(path, _indexed(_as_kind(kind, read_keys(path))))

        with ThreadPoolExecutor(CONCURRENT_READS) as threads:
            for is_stored in threads.map(made, missing):
                if not is_stored:
                    threads.shutdown(cancel_futures=True)
                    return

    def _has(self, path: str, kind: str) -> bool:
        kinds = (kind, _TEXT)
        is_open = any((path, each) in self._open for each in kinds)
        return is_open or any(self._place(path, each).exists() for each in kinds)

    def _known(self, path: str, kind: str) -> FileIndex | None:
        place = self._place(path, kind)
        with suppress(OSError):  # there is none
            os.utime(place)  # also of an open one: those used longest ago are removed first
        known = self._open.get((path, kind)) or self._load(place, path, kind)
        if known is not None:
            self._keep(path, known)
        return known

    def _keep(self, path: str, index: FileIndex) -> None:
        """Keep the index in memory, and close the one that was used longest ago."""
        place = (path, index.keys.kind)
        self._open[place] = index
        self._open.move_to_end(place)
        if len(self._open) > MAX_OPEN:
            self._open.popitem(last=False)

    def put(self, path: str, columns: Sequence[pa.Array]) -> None:
        """Make the index of a file that was just written."""
        self._save(path, _indexed(sorted_keys(columns)))

    def shrink(self) -> None:
        """Remove the indexes that were used longest ago, beyond the limit.

        Closes those that are not stored: the disk has room again only when no process maps a file.
        """
        found = self._stored()
        size = sum(stat.st_size for stat, _ in found)
        left = {file.name for _, file in found}
        for stat, file in sorted(found, key=lambda each: each[0].st_atime_ns):
            if size <= self._limit(stat.st_atime):
                break
            file.unlink(missing_ok=True)
            left.remove(file.name)
            size -= stat.st_size
        for opened in [opened for opened in self._open if self._place(*opened).name not in left]:
            del self._open[opened]

    def _limit(self, used_at: float) -> int:
        """Return the bytes that may stay on disk with an index that was last used then."""
        if used_at < time.time() - IN_USE_SECONDS:
            return self._max_bytes
        if self._max_used_bytes is not None:
            return self._max_used_bytes
        return max(self._max_bytes, shutil.disk_usage(self._folder).total // USED_SHARE)

    def _stored(self) -> list[tuple[os.stat_result, Path]]:
        found: list[tuple[os.stat_result, Path]] = []
        if not self._folder.exists():
            return found
        for entry in os.scandir(self._folder):
            with suppress(FileNotFoundError):  # another worker has renamed or removed it
                found.append((entry.stat(), Path(entry.path)))
        return found

    def _place(self, path: str, kind: str) -> Path:
        return self._folder / f"{hashlib.sha256(path.encode()).hexdigest()}.{kind}"

    def _load(self, place: Path, path: str, kind: str) -> FileIndex | None:
        if not place.exists():
            return None
        try:
            stored = pa.ipc.open_file(pa.memory_map(str(place))).read_all()
        except (OSError, pa.ArrowInvalid) as error:  # removed meanwhile, or damaged
            log.warning("cannot read the key index of %s: %s", path, error)
            return None
        columns = [stored.column(name).chunk(0) for name in ("first", "rows")]
        first, rows = (column.to_numpy() for column in columns)
        second: Any = None
        if "second" in stored.column_names:
            second = stored.column("second").chunk(0)
            second = second.to_numpy() if kind == "uuid" else second
        return FileIndex(SortedKeys(kind, first, second), rows)

    def _save(self, path: str, index: FileIndex) -> bool:
        """Store the index on disk; return whether there was room."""
        arrays = {"first": pa.array(index.keys.first), "rows": pa.array(index.rows)}
        if index.keys.second is not None:
            arrays["second"] = pa.array(index.keys.second)
        table = pa.table(arrays)
        place = self._place(path, index.keys.kind)
        draft = place.with_name(f"{place.name}.{os.getpid()}.{threading.get_ident()}")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with pa.OSFile(str(draft), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            draft.replace(place)
        except OSError as error:  # a full disk: the index is only a cache
            log.warning("no key index on disk: %s", error)
            with suppress(OSError):
                draft.unlink(missing_ok=True)
            return False
        return True


def _as_kind(kind: str, columns: Sequence[pa.Array]) -> SortedKeys:
    """Return a file's keys as those that are wanted, or as texts."""
    keys = sorted_keys(columns)
    return keys if keys.kind == kind else _as_texts(columns)


def _indexed(keys: SortedKeys) -> FileIndex:
    order = keys.order()
    second = keys.second
    if isinstance(second, pa.Array):
        second = second.take(pa.array(order))
    elif second is not None:
        second = second[order]
    return FileIndex(SortedKeys(keys.kind, keys.first[order], second), order.astype(np.int32))


def _equal_numbers(sorted_: Numbers, wanted: Numbers, order: Numbers) -> tuple[Numbers, Numbers]:
    """Return pairs of a wanted number's row and a place in the sorted ones where it is equal."""
    in_order = wanted[order]
    if len(sorted_) * 4 < len(in_order):  # a small file: look its keys up among the wanted ones
        places, found = _ranges(in_order, sorted_)
        return order[found], places
    places, found = _ranges(sorted_, in_order)
    return order[places], found


def _ranges(sorted_: Numbers, wanted: Numbers) -> tuple[Numbers, Numbers]:
    """Return pairs of a row of `wanted` and an equal one of `sorted_`."""
    low, high = (np.searchsorted(sorted_, wanted, side) for side in ("left", "right"))
    counts = high - low
    hits = np.flatnonzero(counts)
    if not len(hits):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    mine = np.repeat(hits, counts[hits])
    starts = np.repeat(low[hits], counts[hits])
    within = np.arange(len(mine)) - np.repeat(np.cumsum(counts[hits]) - counts[hits], counts[hits])
    return mine, starts + within


def _equal(stored: Any, at: Numbers, wanted: Any, mine: Numbers) -> Numbers:
    if isinstance(stored, pa.Array):
        same = pc.equal(stored.take(pa.array(at)), wanted.take(pa.array(mine)))
        return np.flatnonzero(same.to_numpy(zero_copy_only=False))
    return np.flatnonzero(stored[at] == wanted[mine])


def _uuids(texts: pa.Array) -> tuple[Numbers, Numbers] | None:
    """Return both halves of canonical lower-case UUIDs as numbers; None if some text is another."""
    lengths = pc.min_max(pc.binary_length(texts)).as_py()
    if texts.null_count or lengths != {"min": _UUID_LENGTH, "max": _UUID_LENGTH}:
        return None
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset :][: len(texts) + 1]
    raw = np.frombuffer(texts.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    letters = raw.reshape(len(texts), _UUID_LENGTH)
    digits = _HEX[np.delete(letters, _DASHES, axis=1)]
    if (letters[:, _DASHES] != ord("-")).any() or (digits == 255).any():
        return None
    packed = np.ascontiguousarray((digits[:, 0::2] << 4) | digits[:, 1::2])
    words = packed.view(">u8").astype(np.uint64)
    return words[:, 0].copy(), words[:, 1].copy()


def _encoded(columns: Sequence[pa.Array]) -> pa.Array:
    """Return one binary value for each key: its parts, each after its length."""
    parts = [_binary(column) for column in columns]
    if len(parts) == 1:
        return parts[0]
    joined = []
    for part in parts:
        length = pc.binary_length(part).cast(pa.string()).cast(pa.binary())
        joined += [length, part]
    return pc.binary_join_element_wise(*joined, b"\x1f")


def _binary(column: pa.Array) -> pa.Array:
    kind = column.type
    if pa.types.is_binary(kind):
        return column
    if pa.types.is_floating(kind):
        # A key column of a stored file may have been a real; and -0.0 equals 0.0.
        column = pc.add(column.cast(pa.float64()), 0.0)
    if pa.types.is_date(kind):
        column = column.cast(pa.int32())
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    return column.cast(pa.string()).cast(pa.binary())


def _default_folder() -> Path:
    """Return a folder on Spark's local disk, which is gone with the application on Glue."""
    disks = os.environ.get("SPARK_LOCAL_DIRS") or os.environ.get("LOCAL_DIRS")
    return Path(disks.split(",")[0] if disks else tempfile.gettempdir()) / INDEX_FOLDER
