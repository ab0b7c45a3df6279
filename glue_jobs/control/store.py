"""Small JSON objects in S3 under one prefix: plan, leases, progress, requests, reports.

Conditional writes (`If-None-Match`, `If-Match`) give optimistic concurrency to several writers.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import boto3
from botocore.exceptions import ClientError

from cdclake.control_reader import ControlReader

_REFUSED = ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")
_ABSENT = ("NoSuchKey", "404")


class ObjectStore(ControlReader):
    """JSON objects under `s3://bucket/prefix/`."""

    def __init__(self, uri: str) -> None:
        super().__init__(boto3.client("s3"), uri)
        self._headers = threading.local()
        self._s3.meta.events.register("before-call.s3.PutObject", self._add_headers)

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


def _encode(content: dict[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True).encode()
