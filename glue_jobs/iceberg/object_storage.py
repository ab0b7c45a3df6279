"""Writing and reading whole files at a table's location, from a Spark task."""

from __future__ import annotations

import errno
import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import boto3
import pyarrow as pa
from botocore.config import Config
from botocore.exceptions import ClientError

_TAGS = "s3.write.tags."
_LOCATION = re.compile(r"(?:([a-z0-9]+):)?(?://([^/]*))?(.*)", re.DOTALL)
_ENCRYPTION = {"kms": "aws:kms", "dsse-kms": "aws:kms:dsse", "s3": "AES256"}
_CLIENT = {
    "s3.endpoint": "endpoint_url",
    "s3.access-key-id": "aws_access_key_id",
    "s3.secret-access-key": "aws_secret_access_key",
    "s3.session-token": "aws_session_token",
    "client.region": "region_name",
}


class _Place(NamedTuple):
    """Parts of a location. A key is no URL: `?`, `#` and `;` are characters of it."""

    scheme: str
    bucket: str
    path: str

    @staticmethod
    def of(location: str) -> _Place:
        found = _LOCATION.fullmatch(location)
        assert found is not None  # the last group matches any text
        return _Place(*(part or "" for part in found.groups()))

    @property
    def is_local(self) -> bool:
        return self.scheme in ("", "file")

    @property
    def object(self) -> dict[str, str]:
        return {"Bucket": self.bucket, "Key": self.path.removeprefix("/")}


@dataclass(frozen=True, slots=True)
class ObjectStorage:
    """Access to S3 as a catalog's settings for Iceberg's S3FileIO want it, or to local files.

    Without such settings boto3 finds endpoint, region and credentials by itself: the job's role.
    """

    client: Mapping[str, str] = field(default_factory=dict)  # arguments of boto3's client
    put: Mapping[str, str] = field(default_factory=dict)  # arguments of PutObject

    @staticmethod
    def of(settings: Mapping[str, str]) -> ObjectStorage:
        """Return the access by the catalog's settings."""
        client = {_CLIENT[name]: settings[name] for name in _CLIENT if name in settings}
        return ObjectStorage(client, put_options(settings))

    def write(self, location: str, content: pa.Buffer) -> None:
        """Write a new file in one request."""
        place = _Place.of(location)
        if place.is_local:
            path = Path(place.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            return
        self._s3().put_object(**place.object, Body=content.to_pybytes(), **self.put)

    def read(self, location: str) -> pa.Buffer:
        """Read a whole file."""
        place = _Place.of(location)
        if place.is_local:
            return pa.py_buffer(Path(place.path).read_bytes())
        with _found(location):
            return pa.py_buffer(self._s3().get_object(**place.object)["Body"].read())

    def open(self, location: str) -> pa.NativeFile:
        """Open a file to read parts of it."""
        place = _Place.of(location)
        if place.is_local:
            if not Path(place.path).exists():
                raise FileNotFoundError(errno.ENOENT, "no such file", location)
            return pa.memory_map(place.path)
        with _found(location):
            return pa.PythonFile(_S3File(self._s3(), **place.object), "r")

    def list(self, folder: str) -> list[str]:
        """Return the locations of all files below a folder; empty if there is none."""
        place = _Place.of(folder)
        if place.is_local:
            return [str(path) for path in Path(place.path).rglob("*") if path.is_file()]
        pages = (
            self._s3()
            .get_paginator("list_objects_v2")
            .paginate(Bucket=place.bucket, Prefix=f"{place.path.strip('/')}/")
        )
        found = (entry["Key"] for page in pages for entry in page.get("Contents", ()))
        return [f"{place.scheme}://{place.bucket}/{key}" for key in found]

    def delete(self, location: str) -> None:
        """Delete a file; one that is not there is no error."""
        place = _Place.of(location)
        if place.is_local:
            Path(place.path).unlink(missing_ok=True)
            return
        self._s3().delete_object(**place.object)

    def _s3(self) -> Any:
        return _client(tuple(self.client.items()))


class _S3File(io.RawIOBase):
    """Object in S3 that is read by ranges."""

    def __init__(self, client: Any, Bucket: str, Key: str) -> None:
        super().__init__()
        self._client, self._place = client, {"Bucket": Bucket, "Key": Key}
        self._size = int(client.head_object(**self._place)["ContentLength"])
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._at + size, self._size)
        if end <= self._at:
            return b""
        wanted = f"bytes={self._at}-{end - 1}"
        content = self._client.get_object(**self._place, Range=wanted)["Body"].read()
        self._at += len(content)
        return bytes(content)


@contextmanager
def _found(location: str) -> Iterator[None]:
    """Raise FileNotFoundError for an object that S3 does not have."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"]["Code"] in ("404", "NoSuchKey"):
            raise FileNotFoundError(errno.ENOENT, "no such object", location) from error
        raise


@lru_cache(maxsize=4)
def _client(options: tuple[tuple[str, str], ...]) -> Any:
    """Return one client per Python worker: making one takes longer than a request."""
    return boto3.client(
        "s3", config=Config(retries={"mode": "standard", "max_attempts": 8}), **dict(options)
    )


def put_options(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the arguments of S3's PutObject that S3FileIO would add, from a catalog's settings.

    >>> put_options({"s3.sse.type": "kms", "s3.sse.key": "k", "s3.write.tags.team": "data"})
    {'ServerSideEncryption': 'aws:kms', 'SSEKMSKeyId': 'k', 'Tagging': 'team=data'}
    """
    options = {}
    if (kind := settings.get("s3.sse.type", "none")) in _ENCRYPTION:
        options["ServerSideEncryption"] = _ENCRYPTION[kind]
        if "kms" in kind and "s3.sse.key" in settings:
            options["SSEKMSKeyId"] = settings["s3.sse.key"]
    if "s3.acl" in settings:
        options["ACL"] = settings["s3.acl"]
    if "s3.write.storage-class" in settings:
        options["StorageClass"] = settings["s3.write.storage-class"]
    tags = {k.removeprefix(_TAGS): v for k, v in settings.items() if k.startswith(_TAGS)}
    if tags:
        options["Tagging"] = urlencode(tags)
    return options
