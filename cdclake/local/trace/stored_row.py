"""Where a running lake stores the values of a row: its buckets, its files and its logs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from cdclake.activity import step
from cdclake.jobs.erasure.content_search import SQLITE
from cdclake.jobs.erasure.sought_values import SoughtValue, SoughtValues
from cdclake.jobs.erasure.stored_objects import Leftover, search_bucket, search_named
from cdclake.jobs.forget.lake_objects import LakeObjects
from cdclake.jobs.reader.relations import may_be_in_kafka
from cdclake.local.lake.lake import LocalLake
from cdclake.local.reader.duck import lake_reader
from cdclake.trace.stored_report import places_outside, row_values
from cdclake.trace.trace_facts import TraceFacts

# Kafka and the source are not the lake's to erase; the objects are read through S3.
_NOT_READ = ("data/kafka", "data/postgres", "data/aws/objects")

# The lock of a checkpoint that waits for readers must not outlast the patience of a server.
_CHECKPOINT_WAIT_S = 1.0
_CHECKPOINT_ATTEMPTS = 30


def stored_row(lake: LocalLake, facts: TraceFacts) -> dict[str, Any]:
    """Return the parts `stored` and `remaining` of the report of `trace --stored`."""
    values = [SoughtValue(name, text) for name, text in row_values(facts)]
    with step("search what is stored"):
        objects = LakeObjects(lake.client("s3"), lake.client("glue"), lake.plan, lake.warehouse_uri)
        own = tuple(objects.folders_of(facts.table))
        found = sorted(search_lake(lake, SoughtValues(values), own))
    return {
        "stored": [place.to_json() for place in found],
        "remaining": places_outside(
            lake.plan,
            facts.table,
            in_kafka=may_be_in_kafka(facts.table, lake_reader(lake).catalog),
        ),
    }


def search_lake(lake: LocalLake, sought: SoughtValues, own: tuple[str, ...]) -> Iterator[Leftover]:
    """Search the buckets and the files of the lake's folder.

    `own` are prefixes of objects of the values' table.
    """
    client = lake.client("s3")
    for bucket in client.list_buckets()["Buckets"]:
        yield from search_bucket(client, bucket["Name"], sought, own)
    elsewhere = sought.elsewhere()
    for file in _files_of(lake.home.path):
        if (content := _content_of(file)) is not None:
            yield from search_named(str(file), content, elsewhere)


def _content_of(file: Path) -> bytes | None:
    """Return a file's bytes, None if it is deleted meanwhile; of a database, a snapshot.

    A database's write-ahead log, which comes after it, is emptied: it has rows that were deleted.
    """
    try:
        content = file.read_bytes()
        if not content.startswith(SQLITE):
            return content
        address = f"{file.as_uri()}?mode=rw"
        with closing(sqlite3.connect(address, uri=True, timeout=_CHECKPOINT_WAIT_S)) as database:
            _empty_log(database)
            return database.serialize()
    except FileNotFoundError:
        return None


def _empty_log(database: sqlite3.Connection) -> None:
    for _ in range(_CHECKPOINT_ATTEMPTS):
        is_busy, *_ = database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if not is_busy:
            return


def _files_of(home: Path) -> Iterator[Path]:
    """Yield the files of a lake's folder that no other way of the search reads."""
    left_out = tuple(home / name for name in _NOT_READ)
    for file in sorted(home.rglob("*")):
        if file.is_file() and not any(file.is_relative_to(folder) for folder in left_out):
            yield file
