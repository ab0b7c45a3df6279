"""Iceberg tables from their metadata, with one Glue call and one S3 GET per table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import urlparse

from botocore.exceptions import BotoCoreError

from cdclake import naming
from cdclake.errors import APPLY_FILE, ComponentFailed, InputError
from cdclake.iceberg.snapshot_tags import hour_of, moment_of
from cdclake.jobs.iceberg.catalog_entries import table_entries, table_entry
from cdclake.jobs.reader.file_tables import file_rows, no_file_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSnapshot:
    """Snapshot created by one commit of a table."""

    id: int
    parent: int | None
    committed_ms: int
    sequence: int  # Iceberg's sequence number of the commit
    manifests: str  # location of the manifest list
    summary: Mapping[str, str]
    columns: tuple[Mapping[str, Any], ...]  # fields of the snapshot's schema

    @property
    def stamp(self) -> str | None:
        """The commit's stamp, None without one."""
        return self.summary.get(naming.STAMP_PROPERTY)

    @property
    def rows(self) -> int:
        """Number of rows in data files, including those deleted by position."""
        return self._total("total-records")

    @property
    def position_deletes(self) -> int:
        """Number of rows deleted by position and not yet removed by a rewrite."""
        return self._total("total-position-deletes")

    @property
    def live_rows(self) -> int | None:
        """Number of rows, unless deletes by value or of unknown number may hide some."""
        if self._total("total-equality-deletes") or "total-records" not in self.summary:
            return None
        return max(0, self.rows - self.position_deletes)

    @property
    def data_files(self) -> int:
        """Number of data files."""
        return self._total("total-data-files")

    @property
    def delete_files(self) -> int:
        """Number of delete files."""
        return self._total("total-delete-files")

    @property
    def bytes(self) -> int:
        """Size of data and delete files in bytes."""
        return self._total("total-files-size")

    @property
    def committed_at(self) -> datetime:
        """Time of the commit."""
        return _time(self.committed_ms)

    def _total(self, name: str) -> int:
        return int(self.summary.get(name, 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogTable:
    """Table as of the time of loading."""

    name: str
    location: str  # of the metadata file
    columns: tuple[Mapping[str, Any], ...]  # fields of the current schema, as in the metadata
    snapshots: Mapping[int, TableSnapshot]
    current: TableSnapshot | None
    history: tuple[tuple[int, int], ...]  # (milliseconds, snapshot that became current then)
    tagged: Mapping[int, int]  # milliseconds -> snapshot that a tag keeps, before the history
    tags: Mapping[str, int] = field(default_factory=dict)  # every tag -> its snapshot
    properties: Mapping[str, str] = field(default_factory=dict)
    first_ids: frozenset[int] = frozenset()  # ids of the columns that the table was created with

    @property
    def collapsed_before(self) -> date | None:
        """Day before which events of a changelog may be collapsed."""
        day = self.properties.get(naming.COLLAPSED_BEFORE)
        return None if day is None else date.fromisoformat(day)

    def stamped(self, at: TableSnapshot | None) -> TableSnapshot | None:
        """Return the newest snapshot with a stamp, at or before `at`."""
        return next((s for s in self.ancestors(at) if s.stamp is not None), None)

    def ancestors(self, at: TableSnapshot | None) -> Iterator[TableSnapshot]:
        """Yield the snapshot and its retained ancestors, newest first."""
        while at is not None:
            yield at
            at = None if at.parent is None else self.snapshots.get(at.parent)

    def at_time(self, milliseconds: int) -> TableSnapshot | None:
        """Return the snapshot current at that time, None before the first.

        Raises:
            InputError: if the snapshot has expired.
        """
        then = [snapshot for since, snapshot in self.history if since <= milliseconds]
        if then:
            return self.snapshots[then[-1]]
        oldest = next(iter(self.history), None)
        if oldest is None or self.snapshots[oldest[1]].parent is None:
            return None
        earlier = [moment for moment in self.tagged if moment <= milliseconds]
        if earlier and _time(milliseconds) == hour_of(_time(milliseconds)):
            return self.snapshots[self.tagged[max(earlier)]]
        kept = f"ask for {_time(oldest[0]).isoformat()} or later"
        if self.tagged:
            kept += f", or for a whole hour from {_time(min(self.tagged)).isoformat()} on"
        raise InputError(f"{self.name} as of that time has expired", kept)


class Catalog:
    """Tables of one Glue database."""

    def __init__(self, glue: Any, s3: Any, database: str) -> None:
        self._glue, self._s3, self._database = glue, s3, database

    def load(self, name: str) -> CatalogTable:
        """Load the table's current metadata; raise InputError if it does not exist."""
        try:
            entry = table_entry(self._glue, self._database, name)
        except BotoCoreError as error:
            raise ComponentFailed(
                f"the lake's catalog does not answer: {error}", "see `cdclake status`", "aws"
            ) from None
        if entry is None:
            raise InputError(
                f"the lake has no table {self._database}.{name}",
                f"list the tables with `cdclake status`; for a declared one, {APPLY_FILE}",
            )
        location = entry["Parameters"]["metadata_location"]
        return parse_table(name, location, self._metadata(location))

    def rows_in_files(self, name: str) -> str:
        """Return a SELECT of the rows of a table in plain files."""
        return file_rows(self._s3, self._entry(name))

    def no_rows_in_files(self, name: str) -> str:
        """Return a SELECT of the columns of a table in plain files, without rows."""
        return no_file_rows(self._entry(name))

    def _entry(self, name: str) -> dict[str, Any]:
        return dict(self._glue.get_table(DatabaseName=self._database, Name=name)["Table"])

    def names(self) -> frozenset[str]:
        """Return the names of all tables of the database."""
        return frozenset(table_entries(self._glue, self._database))

    def _metadata(self, location: str) -> Any:
        parsed = urlparse(location)
        answer = self._s3.get_object(Bucket=parsed.netloc, Key=parsed.path.lstrip("/"))
        return json.loads(answer["Body"].read())


def parse_table(name: str, location: str, metadata: Mapping[str, Any]) -> CatalogTable:
    """Parse a table's metadata file."""
    schemas = {schema["schema-id"]: tuple(schema["fields"]) for schema in metadata["schemas"]}
    current = metadata["current-schema-id"]
    snapshots = {
        raw["snapshot-id"]: _snapshot(raw, schemas[raw.get("schema-id", current)])
        for raw in metadata.get("snapshots", ())
    }
    tags = {
        tag: reference["snapshot-id"]
        for tag, reference in metadata.get("refs", {}).items()
        if reference.get("type") == "tag"
    }
    return CatalogTable(
        name=name,
        location=location,
        columns=schemas[current],
        snapshots=snapshots,
        current=snapshots.get(metadata.get("current-snapshot-id") or -1),
        history=tuple(
            (entry["timestamp-ms"], entry["snapshot-id"])
            for entry in metadata.get("snapshot-log", ())
            if entry["snapshot-id"] in snapshots
        ),
        tagged={
            int(moment.timestamp() * 1000): snapshot
            for tag, snapshot in tags.items()
            if (moment := moment_of(tag)) is not None
        },
        tags=tags,
        properties=metadata.get("properties", {}),
        first_ids=frozenset(field["id"] for field in schemas[min(schemas)]),
    )


def _snapshot(raw: Mapping[str, Any], columns: tuple[Mapping[str, Any], ...]) -> TableSnapshot:
    return TableSnapshot(
        id=raw["snapshot-id"],
        parent=raw.get("parent-snapshot-id"),
        committed_ms=raw["timestamp-ms"],
        sequence=raw.get("sequence-number", 0),
        manifests=raw.get("manifest-list", ""),
        summary=raw.get("summary", {}),
        columns=columns,
    )


def _time(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
