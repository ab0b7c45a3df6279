"""Files that readers of an Iceberg table's current metadata can reach, from Iceberg's own files."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import fastavro

Read = Callable[[str], bytes]
_REMOVED = 2  # status of a manifest's entry: the file is no part of the snapshot
_STATISTICS = ("statistics", "partition-statistics")


def reachable_files(read: Read, metadata: str) -> set[str]:
    """Return the locations of the files of every snapshot that a metadata file has, and its own.

    `read` returns a file's bytes by its location.
    """
    parsed: dict[str, Any] = json.loads(read(metadata))
    found = {metadata}
    for kind in _STATISTICS:
        found |= {each["statistics-path"] for each in parsed.get(kind, ())}
    manifests: set[str] = set()
    for snapshot in parsed.get("snapshots", ()):
        found.add(snapshot["manifest-list"])
        listed = _records(read(snapshot["manifest-list"]))
        manifests |= {record["manifest_path"] for record in listed}
    for manifest in manifests:
        found.add(manifest)
        found |= {
            entry["data_file"]["file_path"]
            for entry in _records(read(manifest))
            if entry["status"] != _REMOVED
        }
    return found


def _records(content: bytes) -> Iterator[dict[str, Any]]:
    for record in fastavro.reader(io.BytesIO(content)):
        assert isinstance(record, dict)
        yield record
