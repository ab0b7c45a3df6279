"""Reader of the control objects, which the jobs and Firehose's functions share."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlparse


@dataclass(frozen=True, slots=True)
class StoredObject:
    """JSON content of an object, and the ETag for a conditional write."""

    content: dict[str, Any]
    etag: str


class ControlReader:
    """Reader of JSON objects under `s3://bucket/prefix/`; `s3` is a boto3 client."""

    def __init__(self, s3: Any, uri: str) -> None:
        parsed = urlparse(uri)
        self._bucket, self._prefix = parsed.netloc, parsed.path.strip("/")
        self._s3 = s3

    def read(self, name: str) -> StoredObject | None:
        """Return the object, or None if there is none."""
        try:
            answer = self._s3.get_object(Bucket=self._bucket, Key=self._key(name))
        except self._s3.exceptions.NoSuchKey:
            return None
        return StoredObject(json.loads(answer["Body"].read()), answer["ETag"])

    def names(self, folder: str) -> Iterator[str]:
        """Yield the names of the objects in a folder, without the folder."""
        for name in self.names_from(f"{folder}/"):
            yield name.removeprefix(f"{folder}/")

    def names_from(self, start: str) -> Iterator[str]:
        """Yield the names of the objects that begin with `start`."""
        for entry in self._listed(start):
            yield entry["Key"].removeprefix(self._key(""))

    def etags(self, folder: str) -> dict[str, str]:
        """Return the ETags of the objects in a folder, by name without the folder."""
        start = self._key(f"{folder}/")
        return {
            entry["Key"].removeprefix(start): entry["ETag"] for entry in self._listed(f"{folder}/")
        }

    def _listed(self, start: str) -> Iterator[Mapping[str, Any]]:
        pages = self._s3.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._key(start)
        )
        for page in pages:
            yield from page.get("Contents", [])

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name
