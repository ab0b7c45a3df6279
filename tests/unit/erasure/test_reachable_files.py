"""Files that readers of a table reach, by its metadata."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro

from cdclake.jobs.erasure.reachable_files import reachable_files

LIST: dict[str, Any] = {
    "type": "record", "name": "manifest_file",
    "fields": [{"name": "manifest_path", "type": "string"}],
}  # fmt: skip
ENTRY: dict[str, Any] = {
    "type": "record", "name": "manifest_entry", "fields": [
        {"name": "status", "type": "int"},
        {"name": "data_file", "type": {"type": "record", "name": "r2", "fields": [
            {"name": "file_path", "type": "string"}]}}],
}  # fmt: skip


def avro(schema: dict[str, Any], *records: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, schema, records)
    return sink.getvalue()


def entry(status: int, path: str) -> dict[str, Any]:
    return {"status": status, "data_file": {"file_path": path}}


def test_removed_files_and_older_snapshots_are_not_reached() -> None:
    files = {
        "m": json.dumps({"snapshots": [{"manifest-list": "l"}],
                         "statistics": [{"statistics-path": "p"}]}).encode(),
        "l": avro(LIST, {"manifest_path": "a"}),
        "a": avro(ENTRY, entry(0, "old"), entry(1, "new"), entry(2, "removed")),
    }  # fmt: skip
    assert reachable_files(files.__getitem__, "m") == {"m", "l", "a", "p", "old", "new"}


def test_a_table_without_snapshots_has_its_metadata_only() -> None:
    assert reachable_files(lambda _: b'{"snapshots": []}', "m") == {"m"}
