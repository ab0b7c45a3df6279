"""Storage locations of a local lake's tables, and the files that their readers can reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlparse

from cdclake.jobs.erasure.reachable_files import reachable_files
from cdclake.jobs.publish.hudi_timeline import copy_folder
from cdclake.local.lake.lake import LocalLake

_METADATA = "metadata_location"  # parameter of an Iceberg table in Glue
_HUDIS_OWN = "/.hoodie"  # its timeline, and the marks of its partitions's folders


def iceberg_folders(lake: LocalLake) -> Mapping[str, str]:
    """Return the prefix of the objects of each Iceberg table, by its name."""
    return {
        name: _key(metadata.rpartition("/metadata/")[0]) + "/"
        for name, entry in _entries(lake).items()
        if (metadata := entry.get("Parameters", {}).get(_METADATA))
    }


def copy_folder_of(lake: LocalLake, name: str) -> str:
    """Return the prefix of the objects of a Hudi copy."""
    return f"{_key(copy_folder(lake.warehouse_uri, lake.plan.lake_database, name))}/"


def reachable_of_copy(lake: LocalLake, name: str) -> tuple[str, set[str]]:
    """Return the prefix of a copy's objects, and the locations of Hudi's own files among them.

    A copy that was written as a whole has no older file with rows.
    """
    folder = copy_folder_of(lake, name)
    return folder, {location for location in _locations(lake, folder) if _HUDIS_OWN in location}


def has_copy(lake: LocalLake, name: str) -> bool:
    """Check whether a copy was written."""
    return any(True for _ in _locations(lake, copy_folder_of(lake, name)))


def reachable(lake: LocalLake, name: str) -> tuple[str, set[str]]:
    """Return the prefix of a table's objects, and the locations that its readers can reach.

    A table in plain files has a folder for each time that it was written.
    """
    entry = _entries(lake)[name]
    client = lake.client("s3")
    metadata = entry.get("Parameters", {}).get(_METADATA)
    if metadata is not None:
        folder = _key(metadata.rpartition("/metadata/")[0])
        return f"{folder}/", reachable_files(lambda location: _read(client, location), metadata)
    current = entry["StorageDescriptor"]["Location"].rstrip("/")
    found = set(_locations(lake, f"{_key(current)}/"))
    return f"{_key(current.rpartition('/')[0])}/", found


def _locations(lake: LocalLake, prefix: str) -> Iterator[str]:
    """Yield the locations of the objects below a prefix."""
    pages = lake.client("s3").get_paginator("list_objects_v2")
    for page in pages.paginate(Bucket=lake.bucket, Prefix=prefix):
        yield from (f"s3://{lake.bucket}/{each['Key']}" for each in page.get("Contents", ()))


def _entries(lake: LocalLake) -> dict[str, dict[str, Any]]:
    pages = lake.client("glue").get_paginator("get_tables")
    found = pages.paginate(DatabaseName=lake.plan.lake_database)
    return {entry["Name"]: entry for page in found for entry in page["TableList"]}


def _read(client: Any, location: str) -> bytes:
    parsed = urlparse(location)
    answer = client.get_object(Bucket=parsed.netloc, Key=parsed.path.lstrip("/"))
    return bytes(answer["Body"].read())


def _key(location: str) -> str:
    return urlparse(location).path.strip("/")
