"""Objects of a lake's tables: their folders, and the files that their readers can reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlparse

from cdclake import naming
from cdclake.jobs.erasure.content_search import HUDIS_OWN
from cdclake.jobs.erasure.reachable_files import reachable_files
from cdclake.jobs.erasure.stored_objects import newest_content
from cdclake.jobs.iceberg.catalog_entries import table_entries
from cdclake.jobs.publish.hudi_timeline import HudiCommit, copy_folder, newest_stamped
from cdclake.plan import Plan, Table

_METADATA = "metadata_location"  # parameter of an Iceberg table in Glue


@dataclass(frozen=True, slots=True)
class LakeObjects:
    """Catalog and bucket of a lake's tables; the clients are boto3's."""

    s3: Any
    glue: Any
    plan: Plan
    warehouse: str  # URI of the folder of the databases

    @property
    def bucket(self) -> str:
        """Bucket of the tables' files."""
        return urlparse(self.warehouse).netloc

    def folders_of(self, *tables: Table) -> Iterator[str]:
        """Yield the prefixes of the tables' states, changelogs and Hudi copies."""
        iceberg, names = self._iceberg_folders(), {table.name for table in tables}
        for table in tables:
            yield from (iceberg[name] for name in table.stored if name in iceberg)
        yield from (self.copy_folder(copy.name) for copy in self.plan.copies if copy.table in names)

    def undeclared_folders(self) -> list[str]:
        """Return the folders of the database whose table or copy the plan does not have.

        A table that left the file, or was dropped, may have left current or older files there.
        """
        database, declared = self._database, self.declared
        pages = self.s3.get_paginator("list_object_versions")
        found = pages.paginate(Bucket=self.bucket, Prefix=database, Delimiter="/")
        folders = {each["Prefix"] for page in found for each in page.get("CommonPrefixes", ())}
        return [
            f"s3://{self.bucket}/{folder}"
            for folder in sorted(folders)
            if (name := folder.removeprefix(database).rstrip("/")) not in declared
            and not name.startswith(naming.PROBE_TABLE)
        ]

    def folders_of_others(self, table: Table) -> Iterator[str]:
        """Yield the prefixes of everything that the plan stores without rows of the table."""
        plan = self.plan
        mine = {
            naming.QUARANTINE,
            *table.stored,
            *(each.name for each in plan.derived if table.name in each.sources),
            *(each.name for each in plan.copies if each.table == table.name),
        }
        yield from (f"{self._database}{name}/" for name in sorted(self.declared - mine))

    def copy_folder(self, name: str) -> str:
        """Return the prefix of the objects of a Hudi copy."""
        return f"{_key(copy_folder(self.warehouse, self.plan.lake_database, name))}/"

    def has_copy(self, name: str) -> bool:
        """Check whether a copy was written."""
        return any(True for _ in self._locations(self.copy_folder(name)))

    def newest_commit(self, name: str) -> HudiCommit | None:
        """Return the newest commit of a Hudi copy; None if no publication has committed any."""
        return newest_stamped(self, copy_folder(self.warehouse, self.plan.lake_database, name))

    def reachable_of_copy(self, name: str) -> tuple[str, set[str]]:
        """Return the prefix of a copy's objects, and the locations of Hudi's own files among them.

        A copy that was written as a whole has no older file with rows.
        """
        folder = self.copy_folder(name)
        return folder, {location for location in self._locations(folder) if HUDIS_OWN in location}

    def reachable(self, name: str) -> tuple[str, set[str]]:
        """Return the prefix of a table's objects, and the locations that its readers can reach.

        A table in plain files has a folder for each time that it was written.
        """
        entry = self._entries()[name]
        metadata = entry.get("Parameters", {}).get(_METADATA)
        if metadata is not None:
            return _folder_of(metadata), reachable_files(self.read, metadata)
        current = entry["StorageDescriptor"]["Location"].rstrip("/")
        found = set(self._locations(f"{_key(current)}/"))
        return f"{_key(current.rpartition('/')[0])}/", found

    def reachable_from(self, metadata: str) -> tuple[str, set[str]]:
        """Return the prefix of an Iceberg table, and the locations that a metadata file reached.

        Later commits delete the oldest metadata files: then that version is read. In a bucket that
        keeps none, no location is known.
        """
        content = newest_content(self.s3, self.bucket, _key(metadata))
        if content is None:
            return _folder_of(metadata), set()

        def read(location: str) -> bytes:
            return content if location == metadata else self.read(location)

        return _folder_of(metadata), reachable_files(read, metadata)

    def list(self, folder: str) -> list[str]:
        """Return the locations of the objects below a folder."""
        return [*self._locations(f"{_key(folder)}/")]

    def read(self, location: str) -> bytes:
        """Read a whole object."""
        parsed = urlparse(location)
        answer = self.s3.get_object(Bucket=parsed.netloc, Key=parsed.path.lstrip("/"))
        return bytes(answer["Body"].read())

    def _iceberg_folders(self) -> Mapping[str, str]:
        """Return the prefix of the objects of each Iceberg table, by its name."""
        return {
            name: _folder_of(metadata)
            for name, entry in self._entries().items()
            if (metadata := entry.get("Parameters", {}).get(_METADATA))
        }

    @property
    def _database(self) -> str:
        """Prefix of the database's objects; a deployment's warehouse is the root of its bucket."""
        return f"{_key(f'{self.warehouse}/{self.plan.lake_database}.db')}/"

    @property
    def declared(self) -> set[str]:
        """Names of everything that the plan stores, which are those of the folders."""
        plan = self.plan
        return {
            naming.QUARANTINE,
            *plan.sink_tables,
            *(name for table in plan.all_tables for name in table.stored),
            *(name for logs in plan.web_logs for name in logs.tables),
            *(name for put in plan.puts for name in put.tables),
            *(derived.name for derived in plan.derived),
            *(copy.name for copy in plan.copies),
        }

    def _locations(self, prefix: str) -> Iterator[str]:
        """Yield the locations of the objects below a prefix."""
        pages = self.s3.get_paginator("list_objects_v2")
        for page in pages.paginate(Bucket=self.bucket, Prefix=prefix):
            yield from (f"s3://{self.bucket}/{each['Key']}" for each in page.get("Contents", ()))

    def _entries(self) -> dict[str, dict[str, Any]]:
        return table_entries(self.glue, self.plan.lake_database)


def _folder_of(metadata: str) -> str:
    return _key(metadata.rpartition("/metadata/")[0]) + "/"


def _key(location: str) -> str:
    return urlparse(location).path.strip("/")
