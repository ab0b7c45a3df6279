"""Tail of a changelog: what it contains, and where it begins if Firehose writes the changelog.

Where it begins is determined from the commits. A commit may add rows that were ingested before rows
of an earlier commit. The tail therefore starts at the earliest ingestion time in any file committed
after the state's stamp. It may include rows that have already been applied, which is harmless.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlparse

import duckdb

from cdclake import naming
from cdclake.iceberg.collapse import complete_before
from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.tail_facts import TailFacts, tail_facts
from cdclake.iceberg.views import BEFORE_ALL, AppliedThrough
from cdclake.jobs.reader.catalog import CatalogTable, TableSnapshot
from cdclake.plan import Table

# Status of a manifest entry: the commit has added or deleted the file.
_ADDED, _DELETED = 1, 2


@dataclass(frozen=True, slots=True)
class LogFile:
    """Data file of a changelog."""

    path: str
    sequence: int  # of the commit that added its rows, or of a later one
    # Least and greatest `cdc_ingested_at` in microseconds since 1970, if bounds exist.
    first: int | None
    last: int | None


def read_tail(
    session: duckdb.DuckDBPyConnection, table: Table, applied: AppliedThrough, changes: str
) -> TailFacts:
    """Return what the tail of the relation `changes` contains."""
    query = tail_facts(table, changes=changes, applied=applied, dialect=DUCKDB)
    return TailFacts(*session.execute(query).fetchall()[0])


def with_tail(
    session: duckdb.DuckDBPyConnection,
    applied: AppliedThrough,
    log: CatalogTable,
    snapshot: TableSnapshot | None,
) -> AppliedThrough:
    """Return `applied` with the time after which all unapplied rows were ingested."""
    if snapshot is None or snapshot.sequence <= applied.sequence:
        return applied
    known = complete_before(log.properties, applied.sequence)
    files = (
        file
        for file in files_since(session, log, snapshot, applied.sequence)
        if known is None or file.last is None or file.last >= known
    )
    first = [BEFORE_ALL if file.first is None else file.first - 1 for file in files]
    return replace(applied, ingested=min(first, default=applied.ingested))


def files_since(
    session: duckdb.DuckDBPyConnection, log: CatalogTable, snapshot: TableSnapshot, sequence: int
) -> Iterator[LogFile]:
    """Yield the changelog's files at the snapshot with rows committed after `sequence`."""
    listed = session.execute(
        f"SELECT manifest_path, sequence_number FROM {_read([snapshot.manifests])}"
        f" WHERE content = 0 AND sequence_number > {sequence}"
    ).fetchall()
    inherited = {_key(path): number for path, number in listed}
    if not inherited:
        return
    [ingested_at] = [c["id"] for c in log.columns if c["name"] == naming.INGESTED_AT]
    entries = session.execute(
        "SELECT filename, sequence_number, data_file.file_path, data_file.lower_bounds,"
        " data_file.upper_bounds"
        f" FROM {_read([path for path, _ in listed], names=True)} WHERE status <> {_DELETED}"
    ).fetchall()
    for manifest, number, path, *bounds in entries:
        own = inherited[_key(manifest)] if number is None else number
        if own > sequence:
            yield LogFile(path, own, *(_micros(_bounds(each).get(ingested_at)) for each in bounds))


def added_files(session: duckdb.DuckDBPyConnection, log: CatalogTable) -> dict[str, int]:
    """Return each originally added file of the changelog with its commit time in ms.

    Only retained snapshots are considered; files written by a compaction are left out.
    """
    appends = {s.id: s for s in log.snapshots.values() if s.summary.get("operation") == "append"}
    if not appends:
        return {}
    manifests = session.execute(
        "SELECT DISTINCT manifest_path FROM "
        f"{_read([s.manifests for s in appends.values()])} WHERE content = 0"
    ).fetchall()
    entries = session.execute(
        f"SELECT snapshot_id, data_file.file_path FROM {_read([path for (path,) in manifests])}"
        f" WHERE status = {_ADDED}"
    ).fetchall()
    return {path: appends[at].committed_ms for at, path in entries if at in appends}


def _read(locations: Sequence[str], names: bool = False) -> str:
    listed = ", ".join(DUCKDB.text(location) for location in locations)
    return f"read_avro([{listed}]{', filename = true' if names else ''})"


def _key(location: str) -> str:
    """Return a location without its scheme, which differs between readers and writers."""
    return urlparse(location)._replace(scheme="").geturl()


def _micros(bound: bytes | None) -> int | None:
    return None if bound is None else int.from_bytes(bound, "little", signed=True)


def _bounds(bounds: object) -> dict[int, bytes]:
    """Return a file's bounds by field id; {} if its writer left them out."""
    if bounds is None:
        return {}
    if isinstance(bounds, dict):
        return bounds
    assert isinstance(bounds, list)
    return {each["key"]: each["value"] for each in bounds}
