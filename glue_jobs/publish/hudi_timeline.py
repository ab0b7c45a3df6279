"""Timeline of a Hudi table, as far as a copy needs it: the stamp of its newest commit.

Tables are written in version 6 of Hudi's format, whose commits are JSON objects in `.hoodie/`,
named by their instants. The newest ones stay there; only older ones are archived.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from cdclake.jobs.iceberg.object_storage import ObjectStorage
from cdclake.jobs.publish.copy_stamp import CopyStamp

STAMP_KEY = "cdclake.stamp"
_MARK = ".hoodie_partition_metadata"
_COMMITS = ("commit", "deltacommit", "replacecommit")


@dataclass(frozen=True, slots=True)
class HudiCommit:
    """Completed commit: its stamp, and the number of rows that it could not write."""

    stamp: CopyStamp
    failed: int


class Files(Protocol):
    """Storage with the files of copies."""

    def list(self, folder: str) -> list[str]:
        """Return the locations of all files below a folder."""

    def read(self, location: str) -> Any:
        """Read a whole file, as bytes or a buffer."""


def copy_folder(warehouse: str, database: str, name: str) -> str:
    """Return the folder of a copy."""
    return f"{warehouse}/{database}.db/{name}"


def newest_stamped(storage: Files, folder: str) -> HudiCommit | None:
    """Return the newest commit with a stamp; None if the folder has no such commit."""
    for location in _completed(storage, folder):
        content = json.loads(bytes(storage.read(location)))
        if (stamp := (content.get("extraMetadata") or {}).get(STAMP_KEY)) is not None:
            return _commit(content, CopyStamp.from_json(stamp))
    return None


def partition_folders(storage: ObjectStorage, folder: str) -> list[str]:
    """Return the table's folders of partitions, relative to its own, such as `country=Peru`.

    One that has its mark alone is empty: an erasure has deleted the files.
    """
    files = [path.rpartition("/") for path in storage.list(folder)]
    marked = {place for place, _, name in files if name == _MARK}
    filled = {place for place, _, name in files if name != _MARK}
    return sorted(place.rpartition("/")[2] for place in marked & filled)


def _completed(storage: Files, folder: str) -> Iterator[str]:
    """Yield the locations of the completed commits, the newest first."""
    found: dict[str, str] = {}
    for location in storage.list(f"{folder}/.hoodie"):
        instant, _, action = location.rpartition("/")[2].partition(".")
        if instant.isdigit() and action in _COMMITS:
            found[instant] = location
    yield from (found[instant] for instant in sorted(found, reverse=True))


def _commit(content: dict[str, Any], stamp: CopyStamp) -> HudiCommit:
    files = [each for files in content["partitionToWriteStats"].values() for each in files]
    return HudiCommit(stamp, sum(each["totalWriteErrors"] for each in files))
