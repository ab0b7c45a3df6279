"""Small JSON objects in S3 under one prefix: plan, leases, progress, requests, reports.

Conditional writes (`If-None-Match`, `If-Match`) give optimistic concurrency to several writers.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlparse

import boto3
from botocore.exceptions import ClientError

_REFUSED = ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")
_ABSENT = ("NoSuchKey", "404")


@dataclass(frozen=True, slots=True)
class StoredObject:
    """JSON content of an object, and the ETag for a conditional write."""

    content: dict[str, Any]
    etag: str


class ObjectStore:
    """JSON objects under `s3://bucket/prefix/`."""

    def __init__(self, uri: str) -> None:
        parsed = urlparse(uri)
        self._bucket, self._prefix = parsed.netloc, parsed.path.strip("/")
        self._s3, self._headers = boto3.client("s3"), threading.local()
        self._s3.meta.events.register("before-call.s3.PutObject", self._add_headers)

    def read(self, name: str) -> StoredObject | None:
        """Return the object, or None if there is none."""
        try:
            answer = self._s3.get_object(Bucket=self._bucket, Key=self._key(name))
        except ClientError as error:
            if error.response["Error"]["Code"] in _ABSENT:
                return None
            raise
        return StoredObject(json.loads(answer["Body"].read()), answer["ETag"])

    def etag(self, name: str) -> str | None:
        """Return the object's ETag, or None if there is no object."""
        try:
            return str(self._s3.head_object(Bucket=self._bucket, Key=self._key(name))["ETag"])
        except ClientError as error:
            if error.response["Error"]["Code"] in _ABSENT:
                return None
            raise

    def written_at(self, name: str) -> datetime:
        """Return when the object was written, by the clock of S3, in seconds."""
        head = self._s3.head_object(Bucket=self._bucket, Key=self._key(name))
        written: datetime = head["LastModified"]
        return written

    def write(self, name: str, content: dict[str, Any]) -> None:
        """Put the object unconditionally."""
        self._s3.put_object(Bucket=self._bucket, Key=self._key(name), Body=_encode(content))

    def write_if(self, name: str, content: dict[str, Any], etag: str | None) -> str | None:
        """Put the object if its ETag is still `etag` (None: if it is absent).

        Return the new ETag, or None if another writer was first.
        """
        body, key = _encode(content), self._key(name)
        condition = {"If-None-Match": "*"} if etag is None else {"If-Match": etag}
        try:
            with self._sending(condition):
                answer = self._s3.put_object(Bucket=self._bucket, Key=key, Body=body)
        except ClientError as error:
            if error.response["Error"]["Code"] in (*_REFUSED, *_ABSENT):
                return None
            raise
        return str(answer["ETag"])

    @contextmanager
    def _sending(self, headers: dict[str, str]) -> Iterator[None]:
        """Add headers to this thread's requests: older botocores do not know these parameters."""
        self._headers.extra = headers
        try:
            yield
        finally:
            self._headers.extra = {}

    def _add_headers(self, params: dict[str, Any], **_: Any) -> None:
        params["headers"].update(getattr(self._headers, "extra", {}))

    def delete(self, name: str) -> None:
        """Delete the object if it exists."""
        self._s3.delete_object(Bucket=self._bucket, Key=self._key(name))

    def names(self, folder: str) -> Iterator[str]:
        """Yield the names of the objects in a folder, without the folder."""
        prefix = f"{self._key(folder)}/"
        pages = self._s3.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=prefix
        )
        for page in pages:
            for entry in page.get("Contents", []):
                yield entry["Key"].removeprefix(prefix)

    def _key(self, name: str) -> str:
        return f"{self._prefix}/{name}" if self._prefix else name


def _encode(content: dict[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True).encode()
