"""Rows that each commit of a peer's table added, with its time: freshness as a reader has it."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlparse

import fastavro
import psycopg
import pyarrow.parquet as parquet
from psycopg import sql

from cdclake.jobs.reader.catalog import Catalog, TableSnapshot
from cdclake.local.lake.lake import LocalLake
from cdclake.local.reader.duck import lake_reader
from cdclake.plan import Table

_WRITTEN_AT = "updated_at"  # every insert and update sets it to its transaction's time
_ADDED, _DATA = 1, 0


@dataclass(frozen=True, slots=True)
class Sighting:
    """Rows that were written at one time and that one commit made visible."""

    committed_ms: int
    written_us: int
    rows: int


@dataclass(slots=True)
class Sightings:
    """Rows that the commits of each table have added; a commit's files are read once.

    A row is in the files of the commit that brought it: both peers write changed rows as new
    files, and nothing is compacted meanwhile. A row that the same commit replaced may be in none.
    """

    lake: LocalLake
    _seen: dict[str, dict[int, list[Sighting]]] = field(default_factory=dict)

    def look(self, table: Table) -> list[Sighting]:
        """Return what is visible now of the table, by commit and time of writing."""
        seen = self._seen.setdefault(table.name, {})
        catalog = lake_reader(self.lake).catalog
        for snapshot in snapshots(catalog, table):
            if snapshot.id not in seen:
                seen[snapshot.id] = list(self._brought_by(snapshot))
        return [sighting for of_commit in seen.values() for sighting in of_commit]

    def has_all(self, table: Table, written_us: int) -> bool:
        """Return True if the table has a row that was written at that time."""
        return any(found.written_us >= written_us for found in self.look(table))

    def ages_between(self, start: float, stop: float) -> list[tuple[float, int]]:
        """Return (milliseconds from writing to sight, rows) of what was written meanwhile.

        `start` and `stop` are seconds since 1970, of this machine's clock as all others here.
        """
        found = (sighting for table in self.lake.plan.tables for sighting in self.look(table))
        return ages(found, start, stop)

    def _brought_by(self, snapshot: TableSnapshot) -> Iterator[Sighting]:
        times: Counter[int] = Counter()
        for location in added_files(self._read, snapshot):
            column = parquet.read_table(io.BytesIO(self._read(location)), columns=[_WRITTEN_AT])
            times.update(column[_WRITTEN_AT].cast("int64").to_pylist())
        for written, rows in times.items():
            yield Sighting(snapshot.committed_ms, written, rows)

    def _read(self, location: str) -> bytes:
        place = urlparse(location)
        answer = self.lake.client("s3").get_object(Bucket=place.netloc, Key=place.path.lstrip("/"))
        return bytes(answer["Body"].read())


def ages(found: Iterable[Sighting], start: float, stop: float) -> list[tuple[float, int]]:
    """Return (milliseconds from writing to sight, rows) of what was written between the two."""
    return [
        (each.committed_ms - each.written_us / 1000, each.rows)
        for each in found
        if start * 1e6 <= each.written_us <= stop * 1e6
    ]


def snapshots(catalog: Catalog, table: Table) -> list[TableSnapshot]:
    """Return the table's commits; none before the contender has created it."""
    if table.name not in catalog.names():
        return []
    return list(catalog.load(table.name).snapshots.values())


def added_files(read: Any, snapshot: TableSnapshot) -> Iterator[str]:
    """Yield the locations of the data files that the commit added; `read` gives a file's bytes."""
    for manifest in _records(read(snapshot.manifests)):
        if manifest["content"] != _DATA or manifest["added_snapshot_id"] != snapshot.id:
            continue
        for entry in _records(read(manifest["manifest_path"])):
            if entry["status"] == _ADDED:
                yield entry["data_file"]["file_path"]


def newest_writes(dsn: str, tables: Iterable[Table]) -> Mapping[str, int]:
    """Return when each table's newest row was written, in microseconds since 1970."""
    query = "SELECT (extract(epoch FROM max({at})) * 1000000)::bigint FROM {table}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        found = {}
        for table in tables:
            name = sql.Identifier(table.schema, table.table)
            asked = sql.SQL(query).format(at=sql.Identifier(_WRITTEN_AT), table=name)
            row = connection.execute(asked).fetchone()
            assert row is not None  # an aggregate has a row
            found[table.name] = int(row[0])
        return found


def _records(content: bytes) -> Iterator[Any]:
    return iter(fastavro.reader(io.BytesIO(content)))
