"""The register of erased keys: hashes under a salt, and which events they refuse."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from cdclake import naming
from cdclake.control_objects import erasures_name
from cdclake.erasure_register import ErasureRegister
from cdclake.erasures import ErasedKeys, Erasures, KeyHash
from cdclake.errors import ComponentFailed, InputError
from cdclake.jobs.control.erasure_register import register_erasure
from cdclake.jobs.operations.erased_records import _SearchKeys
from cdclake.jobs.stream.block_decoder import BlockDecoder
from cdclake.jobs.stream.erased_events import SharedErasedKeys, without_erased
from cdclake.trace.row_key import RowKey
from tests.spark.events import MemoryStore, plan_of

EARLY, LATE = "00000001.0000000000000010.1.0000000000000000.0000000000000000", "00000002"


def register(store: MemoryStore, keys: list[int], position: str, salt: str = "s") -> None:
    hashed = KeyHash.of("people", salt)
    register_erasure(store, hashed, [hashed.digest([key]) for key in keys], position)  # type: ignore[arg-type]


def read(store: MemoryStore, salt: str = "s") -> ErasedKeys:
    return ErasureRegister(store, lambda: salt).read()["people"]  # type: ignore[arg-type]


def test_the_later_erasure_of_a_key_counts_and_no_key_is_stored() -> None:
    store = MemoryStore()
    register(store, [4711, 2], LATE)
    register(store, [4711, 3], EARLY)
    erased = read(store)
    assert [erased.erased_at([key]) for key in (4711, 2, 3, 4)] == [LATE, LATE, EARLY, ""]
    assert erased.newest == LATE and erased.erased_at(None) == ""
    assert "4711" not in json.dumps(store.stored[erasures_name("people")].content)
    assert KeyHash.of("people", "s").digest([1]) != KeyHash.of("orders", "s").digest([1])


def test_without_a_register_the_salt_is_not_read() -> None:
    def salt() -> str:
        raise AssertionError

    assert ErasureRegister(MemoryStore(), salt).read() == {}  # type: ignore[arg-type]


def test_another_salt_is_an_error_for_readers_and_writers() -> None:
    store = MemoryStore()
    register(store, [1], EARLY)
    with pytest.raises(InputError, match="another salt"):
        read(store, "other")
    with pytest.raises(InputError, match="another salt"):
        register(store, [2], EARLY, "other")


def test_concurrent_commands_lose_no_key() -> None:
    class Contended(MemoryStore):
        writes = 0

        def write_if(self, name: str, content: dict[str, Any], etag: str | None) -> str | None:
            self.writes += 1
            if self.writes == 1:
                register(self, [1], EARLY)
            return super().write_if(name, content, etag)

    store = Contended()
    register(store, [2], EARLY)
    assert [read(store).erased_at([key]) for key in (1, 2)] == [EARLY, EARLY]

    class Lost(MemoryStore):
        def write_if(self, name: str, content: dict[str, Any], etag: str | None) -> str | None:
            return None

    with pytest.raises(ComponentFailed, match="10 times"):
        register(Lost(), [1], EARLY)


def event(key: int | str, prev: int | None, text: str, op: str = "c") -> tuple[bytes, bytes]:
    source = {"lsn": 99, "sequence": json.dumps([None if prev is None else str(prev), "99"])}
    value = {
        "before": None, "after": {"id": key, "v": text, "big": None}, "op": op, "cdc_epoch": "1",
        "source": {**source, "txId": 1, "ts_us": 1_700_000_000_000_000},
    }  # fmt: skip
    return json.dumps({"id": key}).encode(), json.dumps(value).encode()


def test_older_events_of_erased_keys_are_dropped_also_refused_ones() -> None:
    plan = plan_of()
    [table] = plan.tables
    hashed = KeyHash.of(table.name, "s")
    erasures = Erasures(hashed.fingerprint).added([hashed.digest([7])], EARLY)
    records = [
        event(7, 15, "before"), event(7, 16, "after"), event(8, 15, "of another key"),
        event(7, 15, "refused", "x"), event(7, 16, "refused later", "x"),
        (b'{"id": 7}', b"{rubbish"), (b"{}", event(7, 15, "without key")[1]),
    ]  # fmt: skip
    batch = pa.RecordBatch.from_pydict({
        "offset": pa.array(range(len(records)), pa.int64()),
        "key": pa.array([key for key, _ in records], pa.binary()),
        "value": pa.array([value for _, value in records], pa.binary()),
    })  # fmt: skip
    decoder = BlockDecoder(table, plan)
    rows = decoder.decode(
        [value for _, value in records], [key for key, _ in records], 0, batch["offset"].to_numpy()
    )
    erased = ErasedKeys.of(table.name, "s", erasures)
    kept = without_erased(rows, batch, erased, table)[naming.OFFSET].to_pylist()
    assert kept == [1, 2, 4, 5, 6]
    nothing = ErasedKeys.of(table.name, "s", Erasures(hashed.fingerprint))
    assert without_erased(rows, batch, nothing, table).num_rows == len(records)
    shared, read = shared_keys(erased)
    newer = rows.filter(pc.greater_equal(rows[naming.POSITION], EARLY))
    assert shared.dropped(newer, batch, table) is newer and read == []
    assert shared.dropped(rows, batch, table)[naming.OFFSET].to_pylist() == kept
    assert read == [erased]


def shared_keys(erased: ErasedKeys) -> tuple[SharedErasedKeys, list[ErasedKeys]]:
    """Keys as a task has them, and the list of those that it has read."""
    read: list[ErasedKeys] = []

    class Broadcast:
        @property
        def value(self) -> ErasedKeys:
            read.append(erased)
            return erased

    return SharedErasedKeys(erased.newest, Broadcast()), read  # type: ignore[arg-type]


def test_events_are_dropped_by_any_spelling_of_an_erased_number() -> None:
    [declared] = plan_of().tables
    number = replace(declared.columns[0], type="numeric")
    table = replace(declared, columns=(number, *declared.columns[1:]))
    plan = replace(plan_of(), tables=(table,))
    hashed = KeyHash.of(table.name, "s")
    typed = RowKey(table, ("1.5",), {number.name: "1.5"})
    erasures = Erasures(hashed.fingerprint).added([hashed.digest(typed.parts)], EARLY)
    records = [event("1.50", 15, "erased"), event("1.5", 15, "too"), event("15", 15, "kept"),
               event("1.500", 15, "refused", "x"), event("1.50", 16, "newer")]  # fmt: skip
    batch = pa.RecordBatch.from_pydict({
        "offset": pa.array(range(len(records)), pa.int64()),
        "key": pa.array([key for key, _ in records], pa.binary()),
        "value": pa.array([value for _, value in records], pa.binary()),
    })  # fmt: skip
    rows = BlockDecoder(table, plan).decode(
        [value for _, value in records], [key for key, _ in records], 0, batch["offset"].to_numpy()
    )
    erased = ErasedKeys.of(table.name, "s", erasures)
    assert without_erased(rows, batch, erased, table)[naming.OFFSET].to_pylist() == [2, 4]
    searched = pa.RecordBatch.from_pydict({
        "id": ["1.50", "15", "1.5"], naming.POSITION: ["0"] * 3,
    })  # fmt: skip
    [found] = _SearchKeys(erased, (number.column_type,))([searched])
    assert found["id"].to_pylist() == ["1.50", "1.5"]
