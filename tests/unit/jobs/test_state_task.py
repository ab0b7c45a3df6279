"""A task's update of a state, without Spark."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdclake.debezium.position import position_text
from cdclake.jobs.apply import mixed_rows, state_task, stored_rows
from cdclake.jobs.apply.state_task import StateTarget, update_state
from cdclake.jobs.apply.stored_rows import read_places
from cdclake.jobs.iceberg.data_file import Delta, LiveFile, path_of
from cdclake.jobs.iceberg.file_target import FileTarget
from cdclake.jobs.iceberg.object_storage import ObjectStorage
from cdclake.jobs.iceberg.parquet_file import arrow_schema, completed, encode
from cdclake.jobs.iceberg.partition_values import PartitionField
from cdclake.plan import Column, Table

TABLE = Table(
    schema="public", table="t", name="t", topic="x.public.t", key=("id",),
    columns=(
        Column(source="id", name="id", type="bigint"), Column(source="v", name="v", type="text"),
    ),
)  # fmt: skip
AT = datetime(2026, 11, 28, tzinfo=UTC)
SHARED = {
    "id": "long", "v": "string", "cdc_op": "string", "cdc_position": "string", "cdc_tx_id": "long",
    "cdc_committed_at": "timestamptz", "cdc_partition": "int", "cdc_offset": "long",
    "cdc_unavailable": "list",
}  # fmt: skip
CHANGES = {**SHARED, "cdc_lsn": "long"}
STATE = {
    **SHARED, "cdc_deleted": "boolean", "cdc_toast_missing": "list", "cdc_value_positions": "map",
}  # fmt: skip


def schema_of(columns: dict[str, str]) -> str:
    """Return Iceberg's JSON of a schema with these columns."""
    lists = {"type": "list", "element": "string", "element-required": False}
    maps = {"type": "map", "key": "string", "value": "string", "value-required": False}
    fields = []
    for number, (name, kind) in enumerate(columns.items(), 1):
        made: Any = kind
        if kind == "list":
            made = {**lists, "element-id": 100 + number}
        if kind == "map":
            made = {**maps, "key-id": 200 + number, "value-id": 300 + number}
        fields.append({"id": number, "name": name, "required": False, "type": made})
    return json.dumps({"type": "struct", "schema-id": 0, "fields": fields})


def changes_of(
    op: str, lsn: int, values: list[str | None], columns: dict[str, str] | None = None, **more: Any
) -> pa.Table:
    """Return changelog rows of the keys 0, 1, 2, ... with these values, and of more columns."""
    rows = len(values)
    made = {
        "id": list(range(rows)), "v": values, "cdc_op": [op] * rows,
        "cdc_position": [position_text(1, 0, 0, lsn, each) for each in range(rows)],
        "cdc_committed_at": [AT] * rows, "cdc_lsn": [lsn] * rows, **more,
    }  # fmt: skip
    return completed(pa.table(made), arrow_schema(schema_of({**CHANGES, **(columns or {})})))


def target_of(
    folder: Path,
    *stored: str,
    newest: str = "",
    by: tuple[PartitionField, ...] = (),
    columns: Mapping[str, str] | None = None,
) -> StateTarget:
    """Return a state with these data files, and with more columns."""
    schema = schema_of({**STATE, **(columns or {})})
    file = FileTarget(
        schema=schema, spec_id=0, partition_by=by, folder=str(folder),
        full_metrics=frozenset(), storage=ObjectStorage(),
    )  # fmt: skip
    files = [LiveFile(path, number, 0, {}) for number, path in enumerate(stored)]
    return StateTarget(
        table=TABLE, file=file, snapshot_id=1, data_files=files, delete_files=[],
        carried=("v",), newest=newest, floor="",
    )  # fmt: skip


def test_update_state_reads_large_stored_values_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def mix(folded: Any, stored: pa.Table, *how: Any) -> Any:
        read.append(stored.num_rows)
        return mixed_rows.mixed_rows(folded, stored, *how)

    monkeypatch.setattr(state_task, "mixed_rows", mix)
    monkeypatch.setattr(stored_rows, "BLOCK_BYTES", 100_000)
    values: list[str | None] = [f"{n:010000}" for n in range(50)]
    [first] = update_state(target_of(tmp_path), changes_of("c", 10, values)).delta.data_files
    unsent = changes_of("u", 20, [None] * 50, cdc_unavailable=[["v"]] * 50)
    delta = update_state(target_of(tmp_path, path_of(first), newest="1"), unsent).delta
    assert sum(read) == 50
    assert max(read) <= 10
    rows = pq.read_table(path_of(delta.data_files[0]), columns=["id", "v"]).to_pylist()
    assert {row["id"]: row["v"] for row in rows} == dict(enumerate(values))
    [deletes] = delta.delete_files
    assert json.loads(deletes)["record-count"] == 50


def test_read_places_counts_a_repeated_value_for_each_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_rows, "BLOCK_BYTES", 200_000)
    monkeypatch.setattr(stored_rows, "_MAX_MEASURED_BYTES", 500_000)
    rows = changes_of("c", 10, ["x" * 10_000, "y" * 10_000] * 1000)
    content, footer = encode(rows)
    assert footer.row_group(0).total_byte_size < 500_000
    path = tmp_path / "rows.parquet"
    path.write_bytes(content)
    places = np.arange(0, 2000, 2)
    blocks = list(read_places(ObjectStorage(), str(path), places, rows.schema))
    assert 5 < max(len(block) for block in blocks) <= 10
    assert pa.concat_tables(blocks).equals(rows.take(pa.array(places)))


def test_update_state_holds_few_rows_with_large_stored_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The changes are small, but the rows that they alter need any amount of memory."""
    held: list[int] = []

    def write(self: FileTarget, rows: pa.Table) -> Any:
        held.append(rows.nbytes)
        return write_partitions(self, rows)

    write_partitions = FileTarget.write_partitions
    values: list[str | None] = [f"{n:010000}" for n in range(50)]
    by = (PartitionField(1000, "id_bucket", "id", "bucket[2]"),)
    created = update_state(target_of(tmp_path, by=by), changes_of("c", 10, values)).delta
    monkeypatch.setattr(FileTarget, "write_partitions", write)
    monkeypatch.setattr(stored_rows, "BLOCK_BYTES", 50_000)
    monkeypatch.setattr(state_task, "MAX_HELD_BYTES", 100_000)
    unsent = changes_of("u", 20, [None] * 50, cdc_unavailable=[["v"]] * 50)
    stored = [path_of(each) for each in created.data_files]
    assert len(stored) == 2
    delta = update_state(target_of(tmp_path, *stored, newest="1", by=by), unsent).delta
    assert len(held) >= 3
    assert max(held) < 200_000
    paths = [path_of(each) for each in delta.data_files]
    rows = [row for path in paths for row in pq.read_table(path, columns=["id", "v"]).to_pylist()]
    assert len(rows) == 50
    assert {row["id"]: row["v"] for row in rows} == dict(enumerate(values))
    assert sum(json.loads(each)["record-count"] for each in delta.delete_files) == 50


@pytest.mark.parametrize("op", ["c", "u"])
@pytest.mark.parametrize("stored_events", [0, 1, 2])
def test_update_state_gives_a_row_no_value_of_an_earlier_row_of_its_key(
    tmp_path: Path, stored_events: int, op: str
) -> None:
    """The event that has the value, of the row's old key or refused, is not in the changelog."""
    events = [
        changes_of("c", 10, ["a"]),
        changes_of("d", 20, [None]),
        changes_of(op, 30, [None], cdc_unavailable=[["v"]]),
    ]
    former, rest = events[:stored_events], pa.concat_tables(events[stored_events:])
    target = target_of(tmp_path)
    if former:
        [stored] = update_state(target, pa.concat_tables(former)).delta.data_files
        target = target_of(tmp_path, path_of(stored), newest="1")
    delta = update_state(target, rest).delta
    [row] = pq.read_table(path_of(delta.data_files[0])).to_pylist()
    assert (row["v"], row["cdc_toast_missing"]) == (None, ["v"])


def test_update_state_takes_no_value_of_a_late_delete_of_an_earlier_row(tmp_path: Path) -> None:
    row_and_next = [
        changes_of("c", 10, ["a"]),
        changes_of("u", 30, [None], cdc_unavailable=[["v"]]),
    ]
    [stored] = update_state(target_of(tmp_path), pa.concat_tables(row_and_next)).delta.data_files
    target = target_of(tmp_path, path_of(stored), newest="1")
    delta = update_state(target, changes_of("d", 20, [None])).delta
    [row] = pq.read_table(path_of(delta.data_files[0])).to_pylist()
    assert (row["v"], row["cdc_toast_missing"]) == (None, ["v"])


@pytest.mark.parametrize(
    ("ops", "kept"), [("u", "m"), ("r", "m"), ("d", None), ("dc", None), ("dcu", None)]
)
@pytest.mark.parametrize("in_one_batch", [True, False])
def test_update_state_gives_a_row_no_dropped_value_of_an_earlier_row_of_its_key(
    tmp_path: Path, ops: str, kept: str | None, in_one_batch: bool
) -> None:
    columns, dropped = {"cdc_dropped_x": "string"}, "cdc_dropped_x"
    declared = Column(source=dropped, name=dropped, type="text")
    before = replace(TABLE, columns=(*TABLE.columns, declared))
    first = changes_of("c", 10, ["a"], columns, cdc_dropped_x=["m"])
    batches = [
        changes_of(op, 20 + n, [None if op == "d" else "b"], columns) for n, op in enumerate(ops)
    ]
    target = replace(target_of(tmp_path, columns=columns), table=before)
    [stored] = update_state(target, first).delta.data_files
    for batch in [pa.concat_tables(batches)] if in_one_batch else batches:
        target = target_of(tmp_path, path_of(stored), newest="1", columns=columns)
        [stored] = update_state(target, batch).delta.data_files
    [row] = pq.read_table(path_of(stored)).to_pylist()
    assert (row[dropped], row["cdc_deleted"]) == (kept, ops[-1] == "d")


def test_update_state_finds_rows_by_the_columns_of_the_present_key(tmp_path: Path) -> None:
    numbers = replace(TABLE, columns=(*TABLE.columns, Column(source="n", name="n", type="bigint")))
    columns = {"n": "long"}
    values: list[str | None] = ["a", "b", "c"]

    def updated(key: str, lsn: int, *stored: str) -> Delta:
        target = target_of(tmp_path, *stored, newest="1", columns=columns)
        changes = changes_of("r", lsn, values, columns, n=[20, 0, 1])
        return update_state(replace(target, table=replace(numbers, key=(key,))), changes).delta

    [first] = updated("id", 10).data_files
    [deletes] = updated("n", 20, path_of(first)).delete_files
    assert json.loads(deletes)["record-count"] == 3


@pytest.mark.parametrize(
    ("kind", "transform"),
    [("timestamptz", "month"), ("long", "bucket[4]"), ("string", "identity")],
)
def test_update_state_partitions_new_rows_by_a_column_that_was_dropped(
    tmp_path: Path, kind: str, transform: str
) -> None:
    """The table keeps its partitions; the column that the plan no longer has is NULL."""
    by = (PartitionField(1000, "x_part", "cdc_dropped_x", transform),)
    target = target_of(tmp_path, by=by, columns={"cdc_dropped_x": kind})
    [stored] = update_state(target, changes_of("c", 10, ["a", "b"])).delta.data_files
    assert json.loads(stored)["partition"] == {"1000": None}
    rows = pq.read_table(path_of(stored), columns=["id", "cdc_dropped_x"]).to_pylist()
    assert rows == [{"id": 0, "cdc_dropped_x": None}, {"id": 1, "cdc_dropped_x": None}]


@pytest.mark.parametrize("fields", [1, 5])
def test_update_state_keeps_object_names_within_the_limit_of_s3(
    tmp_path: Path, fields: int
) -> None:
    value = "ж" * 2000 + "/"
    by = tuple(PartitionField(1000 + n, f"{n}{'n' * 62}", "v", "identity") for n in range(fields))
    delta = update_state(target_of(tmp_path, by=by), changes_of("c", 10, [value])).delta
    [file] = delta.data_files
    assert set(json.loads(file)["partition"].values()) == {value}
    parts = path_of(file).removeprefix(f"{tmp_path}/").split("/")
    assert len(parts) == fields + 1
    assert sum(map(len, parts)) < 800  # of 1,024, with the folder of the table
    assert max(map(len, parts)) <= 255  # of a file system's names
    assert all(set(unquote_plus(part.partition("=")[2])) <= {"ж"} for part in parts[:-1])
