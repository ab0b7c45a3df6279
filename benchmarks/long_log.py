"""A table of many files or commits, as one has that is written to all day long."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from cdclake.jobs.iceberg.lake_tables import LakeTables

FILLER_OFFSET = -7  # of the rows in these files: not one of the batches'
_FILES_A_COMMIT = 100
_COMMIT_EVERY_MS = 120_000
_FIRST_ID = 1_000_000_000_000_000_000


def lengthen(lake: LakeTables, table: str, files: int) -> None:
    """Give the table, which has one file in a folder, that many: each the same one once more.

    A file is a hard link and its commit has no rows to write, so that ten thousand take seconds;
    the manifests are what that many appends leave behind.
    """
    loaded = lake.load(table)
    file = loaded.currentSnapshot().addedDataFiles(loaded.io()).iterator().next()
    first = Path(urlparse(str(file.location())).path)
    builders = lake.spark.sparkContext._jvm.org.apache.iceberg.DataFiles  # type: ignore[union-attr]
    for start in range(0, files, _FILES_A_COMMIT):
        commit = loaded.newAppend()
        for number in range(start, min(start + _FILES_A_COMMIT, files)):
            link = first.with_name(f"filler-{number:06}.parquet")
            os.link(first, link)
            builder = builders.builder(loaded.spec()).copy(file).withPath(str(link))
            commit.appendFile(builder.build())
        commit.commit()


def add_commits(lake: LakeTables, table: str, commits: int) -> None:
    """Give the table, which is in a folder, that many commits before its current one.

    Each is a copy of the current snapshot with an earlier time, written into a new version of the
    metadata file: commits by Iceberg would each write all earlier ones again.
    """
    if not commits:
        return
    location = lake.load(table).operations().current().metadataFileLocation()
    file = Path(urlparse(str(location)).path)
    metadata = json.loads(file.read_text())
    [current] = (s for s in metadata["snapshots"] if s["snapshot-id"] == _current_id(metadata))
    earlier = [
        {
            **current,
            "snapshot-id": _FIRST_ID + number,
            "parent-snapshot-id": _FIRST_ID + number - 1,
            "timestamp-ms": current["timestamp-ms"] - (commits - number) * _COMMIT_EVERY_MS,
        }
        for number in range(commits)
    ]
    del earlier[0]["parent-snapshot-id"]
    current["parent-snapshot-id"] = earlier[-1]["snapshot-id"]
    metadata["snapshots"] = [*earlier, current]
    metadata["snapshot-log"] = [
        {"timestamp-ms": s["timestamp-ms"], "snapshot-id": s["snapshot-id"]}
        for s in metadata["snapshots"]
    ]
    version = int(file.name.removeprefix("v").partition(".")[0]) + 1
    file.with_name(f"v{version}.metadata.json").write_text(json.dumps(metadata))
    hint = file.with_name("version-hint.text")
    hint.with_name(f".{hint.name}.crc").unlink(missing_ok=True)
    hint.write_text(str(version))


def _current_id(metadata: dict[str, Any]) -> int:
    return int(metadata["current-snapshot-id"])
