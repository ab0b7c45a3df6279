"""Indexes of data files: exact for every type of key, bounded on disk, and never in the way."""

import os
import time
import tracemalloc
import uuid
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from random import Random
from threading import Barrier

import numpy as np
import pyarrow as pa
import pytest

from cdclake.jobs.apply import key_index
from cdclake.jobs.apply.key_index import IN_USE_SECONDS, KeyIndexes, WantedKeys

Columns = Sequence[pa.Array]


def never() -> Columns:
    raise AssertionError("the file has an index")


def reading(columns: Columns) -> Callable[[], Columns]:
    return lambda: columns


def found(indexes: KeyIndexes, stored: Columns, wanted: Columns) -> dict[int, int]:
    path = uuid.uuid4().hex
    mine, rows = indexes.look_up(path, WantedKeys(wanted), reading(stored))
    again = indexes.look_up(path, WantedKeys(wanted), never)
    assert [a.tolist() for a in again] == [mine.tolist(), rows.tolist()]
    assert len({*mine.tolist()}) == len(mine)
    return dict(zip(mine.tolist(), rows.tolist(), strict=True))


def expected(stored: Columns, wanted: Columns) -> dict[int, int]:
    rows = {key: row for row, key in enumerate(zip(*(c.to_pylist() for c in stored), strict=True))}
    keys = zip(*(c.to_pylist() for c in wanted), strict=True)
    return {number: rows[key] for number, key in enumerate(keys) if key in rows}


def some_uuid(number: int) -> str:
    """Many share their first half."""
    return str(uuid.UUID(int=((number % 3) << 64) | number))


KEYS: dict[str, list[Callable[[int], object]]] = {
    "bigint": [lambda n: n * 7 - 1000],
    "uuid": [some_uuid],
    "text": [lambda n: "ä" * (n % 5) + str(n)],
    "uuids and texts": [lambda n: some_uuid(n) if n % 2 else f"no uuid {n}"],
    "composite": [lambda n: n % 11, lambda n: str(n // 11)],
    "texts that run into each other": [lambda n: "1" * (n % 9), lambda n: "1" * (n // 9)],
    "decimal": [lambda n: Decimal(n) / 100],
    "date": [lambda n: date.fromordinal(700_000 + n)],
    "bytes": [lambda n: bytes([n % 256, n // 256])],
}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize(("stored", "wanted"), [(500, 60), (20, 300)], ids=["few", "many"])
def test_each_key_is_found_where_it_is(tmp_path: Path, kind: str, stored: int, wanted: int) -> None:
    random = Random(kind)
    numbers = random.sample(range(600), stored), random.sample(range(600), wanted)
    columns = [[pa.array([make(n) for n in chosen]) for make in KEYS[kind]] for chosen in numbers]
    if kind == "decimal":
        columns = [[c.cast(pa.decimal128(9, 2)) for c in each] for each in columns]
    assert found(KeyIndexes(tmp_path), *columns) == expected(*columns)


def test_equal_hashes_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_index, "hash_array", lambda keys, **_: np.zeros(len(keys), np.uint64))
    stored, wanted = pa.array(["a", "b", "c"]), pa.array(["c", "x", "a"])
    assert found(KeyIndexes(tmp_path), [stored], [wanted]) == {0: 2, 2: 0}


def test_minus_zero_is_zero(tmp_path: Path) -> None:
    assert found(KeyIndexes(tmp_path), [pa.array([-0.0, 1.5])], [pa.array([0.0])]) == {0: 0}


def test_a_real_is_found_when_its_column_has_become_double(tmp_path: Path) -> None:
    indexes, stored = KeyIndexes(tmp_path), pa.array([1.1, 2.5], pa.float32())
    indexes.put("file", [stored])
    wanted = WantedKeys([stored.cast(pa.float64())])
    mine, rows = indexes.look_up("file", wanted, never)
    assert dict(zip(mine.tolist(), rows.tolist(), strict=True)) == {0: 0, 1: 1}


def test_an_index_outlives_its_process(tmp_path: Path) -> None:
    keys = [pa.array(["a", "b"])]
    KeyIndexes(tmp_path).put("file", keys)
    mine, rows = KeyIndexes(tmp_path).look_up("file", WantedKeys([pa.array(["b"])]), never)
    assert (mine.tolist(), rows.tolist()) == ([0], [1])


def test_a_damaged_index_is_made_again(tmp_path: Path) -> None:
    keys = [pa.array([3, 4])]
    KeyIndexes(tmp_path).put("file", keys)
    [stored] = tmp_path.iterdir()
    stored.write_bytes(stored.read_bytes()[:50])
    mine, rows = KeyIndexes(tmp_path).look_up("file", WantedKeys([pa.array([4])]), reading(keys))
    assert (mine.tolist(), rows.tolist()) == ([0], [1])


def test_the_indexes_used_longest_ago_are_removed(tmp_path: Path) -> None:
    many = KeyIndexes(tmp_path)
    for number in range(4):
        many.put(str(number), [pa.array(range(1000))])
    size = sum(file.stat().st_size for file in tmp_path.iterdir())
    kept = KeyIndexes(tmp_path, max_used_bytes=size // 2)
    kept.look_up("0", WantedKeys([pa.array([5])]), never)
    kept.shrink()
    assert len(list(tmp_path.iterdir())) == 2
    KeyIndexes(tmp_path).look_up("0", WantedKeys([pa.array([5])]), never)


def test_an_index_that_stays_open_counts_as_used(tmp_path: Path) -> None:
    """The large index of a state's oldest file is loaded once and used by every batch."""
    KeyIndexes(tmp_path).put("base", [pa.array(range(10_000))])
    [base] = tmp_path.iterdir()
    indexes = KeyIndexes(tmp_path, max_used_bytes=base.stat().st_size + 50_000)
    for number in range(20):
        indexes.put(str(number), [pa.array(range(1000))])
        indexes.look_up("base", WantedKeys([pa.array([5])]), never)
        indexes.shrink()
    assert base.exists()
    assert len(list(tmp_path.iterdir())) < 20


def test_indexes_in_use_stay_beyond_the_limit_of_all(tmp_path: Path) -> None:
    """Each update of a large state uses all its indexes, and would make removed ones again."""
    files, read = [str(number) for number in range(3)], []

    def read_keys() -> Columns:
        read.append(1)
        return [pa.array(range(1000))]

    for _ in range(4):
        indexes = KeyIndexes(tmp_path, max_bytes=0)
        for file in files:
            indexes.look_up(file, WantedKeys([pa.array([5])]), read_keys)
        indexes.shrink()
    assert len(read) == len(files)
    for stored in tmp_path.iterdir():
        os.utime(stored, (time.time() - IN_USE_SECONDS - 60,) * 2)
    indexes.shrink()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("removed_by", ["this worker", "another worker"])
def test_a_removed_index_is_closed(tmp_path: Path, removed_by: str) -> None:
    indexes = KeyIndexes(tmp_path, max_used_bytes=0)
    indexes.put("file", [pa.array(range(1000))])
    indexes.look_up("file", WantedKeys([pa.array([5])]), never)
    [stored] = tmp_path.iterdir()
    maps = Path("/proc/self/maps")
    assert stored.name in maps.read_text()
    if removed_by == "another worker":
        stored.unlink()
    indexes.shrink()
    assert stored.name not in maps.read_text()


def test_files_that_another_worker_removes_meanwhile_are_passed_over(tmp_path: Path) -> None:
    indexes = KeyIndexes(tmp_path, max_used_bytes=0)
    for number in range(200):
        indexes.put(str(number), [pa.array([number])])
    scanned = os.scandir

    def removing(folder: Path) -> object:
        entries = list(scanned(folder))
        for entry in entries[::2]:
            Path(entry.path).unlink()
        return entries

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("os.scandir", removing)
        indexes.shrink()
    assert not list(tmp_path.iterdir())


def test_few_indexes_are_open_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_index, "MAX_OPEN", 2)
    indexes, keys = KeyIndexes(tmp_path), [pa.array([1])]
    for path in ("a", "b", "a", "c"):
        indexes.look_up(path, WantedKeys(keys), reading(keys))
    assert [path for path, _ in indexes._open] == ["a", "c"]


def test_made_indexes_are_not_held_in_memory(tmp_path: Path) -> None:
    indexes, keys = KeyIndexes(tmp_path), [pa.array(range(100_000))]
    tracemalloc.start()
    for number in range(8):
        mine, rows = indexes.look_up(str(number), WantedKeys([pa.array([number])]), reading(keys))
        assert (mine.tolist(), rows.tolist()) == ([0], [number])
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 100_000 * 8


def test_make_reads_only_files_without_an_index(tmp_path: Path) -> None:
    indexes, read = KeyIndexes(tmp_path), []
    for path in ("open", "on disk"):
        indexes.put(path, [pa.array([1])])
    indexes.look_up("open", WantedKeys([pa.array([1])]), never)

    def read_keys(path: str) -> Columns:
        read.append(path)
        return [pa.array([len(path)])]

    paths = ["open", "on disk", *(f"new {number}" for number in range(20))]
    indexes.make(paths, "int", read_keys)
    indexes.make(paths, "int", read_keys)
    assert sorted(read) == sorted(paths[2:])
    for path in paths[2:]:
        mine, _ = indexes.look_up(path, WantedKeys([pa.array([len(path)])]), never)
        assert mine.tolist() == [0]


def test_make_reads_several_files_at_a_time(tmp_path: Path) -> None:
    both = Barrier(2, timeout=10)

    def read_keys(_: str) -> Columns:
        both.wait()  # raises if the other file is not read meanwhile
        return [pa.array([1])]

    KeyIndexes(tmp_path).make(["a", "b"], "int", read_keys)
    assert len(list(tmp_path.iterdir())) == 2


def test_make_raises_the_failure_of_a_read(tmp_path: Path) -> None:
    def read_keys(path: str) -> Columns:
        raise FileNotFoundError(path)

    with pytest.raises(FileNotFoundError):
        KeyIndexes(tmp_path).make(["a", "b"], "int", read_keys)


def test_make_stops_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_full(*_: object) -> None:
        raise OSError("No space left on device")

    read = []

    def read_keys(path: str) -> Columns:
        read.append(path)
        return [pa.array([1])]

    monkeypatch.setattr(Path, "replace", is_full)
    KeyIndexes(tmp_path).make([str(number) for number in range(1000)], "int", read_keys)
    assert 0 < len(read) < 1000


def test_a_full_disk_means_no_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def is_full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(pa, "OSFile", is_full)
    assert found(KeyIndexes(tmp_path), [pa.array([1, 2])], [pa.array([2])]) == {0: 1}
    assert "No space left" in caplog.text and not list(tmp_path.iterdir())
    KeyIndexes(tmp_path / "nothing").shrink()
