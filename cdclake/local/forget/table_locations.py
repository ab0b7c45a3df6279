"""Storage locations of a local lake's tables, and the files that their readers can reach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlparse

from cdclake.jobs.erasure.reachable_files import reachable_files
from cdclake.local.lake.lake import LocalLake

_METADATA = "metadata_location"  # parameter of an Iceberg table in Glue


def iceberg_folders(lake: LocalLake) -> Mapping[str, str]:
    """Return the prefix of the objects of each Iceberg table, by its name."""
    return {
        name: _key(metadata.rpartition("/metadata/")[0]) + "/"
        for name, entry in _entries(lake).items()
        if (metadata := entry.get("Parameters", {}).get(_METADATA))
    }


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
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=lake.bucket, Prefix=f"{_key(current)}/"
    )
    found = {
        f"s3://{lake.bucket}/{each['Key']}" for page in pages for each in page.get("Contents", ())
    }
    return f"{_key(current.rpartition('/')[0])}/", found


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
