"""Writer of the control objects, which the jobs and the source's functions share.

Conditional writes (`If-None-Match`, `If-Match`) give optimistic concurrency to several writers.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cdclake.control_reader import ControlReader

_REFUSED = ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")
ABSENT = ("NoSuchKey", "404")


class ControlWriter(ControlReader):
    """Reader and writer of JSON objects under `s3://bucket/prefix/`.

    `s3` is a boto3 client that it shares with no other writer.
    """

    def __init__(self, s3: Any, uri: str) -> None:
        super().__init__(s3, uri)
        self._headers = threading.local()
        self._s3.meta.events.register("before-call.s3.PutObject", self._add_headers)

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
        except self._s3.exceptions.ClientError as error:
            if error.response["Error"]["Code"] in (*_REFUSED, *ABSENT):
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


def _encode(content: dict[str, Any]) -> bytes:
    return json.dumps(content, sort_keys=True).encode()
