"""Everything that S3 stores below a prefix: every version of every object, and delete markers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from botocore.exceptions import ClientError

from cdclake.jobs.erasure.content_search import search_content
from cdclake.jobs.erasure.sought_values import SoughtValues

_ABSENT = ("NoSuchKey", "NoSuchVersion", "404")
_UNVERSIONED = "null"


class ObjectVersion(NamedTuple):
    """Version of an object; a delete marker has a name and no content."""

    key: str
    version: str
    is_newest: bool
    is_marker: bool
    modified: datetime

    @property
    def identity(self) -> Mapping[str, str]:
        """Argument of a request for this version; none for an object without versions."""
        return {} if self.version == _UNVERSIONED else {"VersionId": self.version}


class Leftover(NamedTuple):
    """Place where values are stored, and their columns; never the values."""

    where: str
    part: str
    columns: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the place for a report."""
        return {"where": self.where, "part": self.part, "columns": list(self.columns)}


def object_versions(client: Any, bucket: str, prefix: str = "") -> Iterator[ObjectVersion]:
    """Yield all versions and delete markers in the bucket; `client` is boto3's of S3."""
    pages = client.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix)
    for page in pages:
        for kind in ("Versions", "DeleteMarkers"):
            for entry in page.get(kind, ()):
                yield ObjectVersion(
                    key=entry["Key"],
                    version=entry.get("VersionId") or _UNVERSIONED,
                    is_newest=entry["IsLatest"],
                    is_marker=kind == "DeleteMarkers",
                    modified=entry["LastModified"],
                )


def newest_content(client: Any, bucket: str, key: str) -> bytes | None:
    """Return an object's content, of a deleted one that of its newest version; None without one."""
    found = object_versions(client, bucket, key)
    versions = [each for each in found if each.key == key and not each.is_marker]
    newest = max(versions, key=lambda version: version.modified, default=None)
    return None if newest is None else _content(client, bucket, newest)


def search_bucket(
    client: Any, bucket: str, sought: SoughtValues, own: tuple[str, ...]
) -> Iterator[Leftover]:
    """Search all that the bucket stores; `own` are prefixes of the values' table."""
    for version in object_versions(client, bucket):
        yield from search_version(client, bucket, version, sought, own)


def search_version(
    client: Any, bucket: str, version: ObjectVersion, sought: SoughtValues, own: tuple[str, ...]
) -> Iterator[Leftover]:
    """Search one version of an object; one that is deleted meanwhile counts as not stored."""
    mine = sought if version.key.startswith(own) else sought.elsewhere()
    content = b"" if version.is_marker else _content(client, bucket, version)
    if content is not None:
        where = f"s3://{bucket}/{version.key}{_suffix(version)}"
        yield from _leftovers(where, version.key, content, mine)


def search_named(where: str, content: bytes, sought: SoughtValues) -> Iterator[Leftover]:
    """Search one file, whose name is where it is."""
    yield from _leftovers(where, where, content, sought)


def _leftovers(where: str, name: str, content: bytes, sought: SoughtValues) -> Iterator[Leftover]:
    parts: dict[str, set[str]] = {}
    for part, columns in search_content(name, content, sought):
        parts.setdefault(part, set()).update(columns)
    for part, columns in parts.items():
        yield Leftover(where, part, tuple(sorted(columns)))


def _suffix(version: ObjectVersion) -> str:
    if version.is_marker:
        return f" (delete marker {version.version})"
    return "" if version.is_newest else f" (version {version.version})"


def _content(client: Any, bucket: str, version: ObjectVersion) -> bytes | None:
    place = {"Bucket": bucket, "Key": version.key}
    try:
        return bytes(client.get_object(**place, **version.identity)["Body"].read())
    except ClientError as error:
        if error.response["Error"]["Code"] in _ABSENT:
            return None
        raise
