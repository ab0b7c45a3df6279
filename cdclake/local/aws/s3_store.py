"""moto's S3 with its objects on disk and its index in SQLite.

moto keeps an object's bytes and everything about it in memory. Here two of its classes are replaced
by subclasses: the object's, whose bytes are a file, and the bucket's, which notes what a request
changed. `S3Store.commit` writes that down before the response is sent.

Unlike S3: versions, tags, ACLs, policies and unfinished multipart uploads are gone after a restart,
and a part of a multipart object cannot be read by its number.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import mmap
import time
import uuid
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3 import models
from moto.s3.responses import S3Response
from moto.s3.utils import _VersionedKeyStore

from cdclake.local.aws.index import Index

MIN_MAPPED_BYTES = 1 << 20
KEEP_DELETED_S = 30.0
CHECKSUM_FIELDS = ("checksum_algorithm", "checksum_value", "checksum_type", "checksum_parts")


class S3Store:
    """The bytes below `folder`/objects and what the current request has changed."""

    def __init__(self, folder: Path, index: Index) -> None:
        self.objects = folder / "objects"
        self.index = index
        self.changed_keys: set[tuple[str, str]] = set()
        self.known_buckets: set[str] = set()
        self.deleted: deque[tuple[float, Path]] = deque()

    def install(self) -> None:
        """Put our classes in moto's place and load what there was."""
        self.objects.mkdir(parents=True, exist_ok=True)
        StoredKey.store = StoredBucket.store = self
        models.FakeKey = StoredKey  # type: ignore[misc]
        models.FakeBucket = StoredBucket  # type: ignore[misc]
        _serve_mapped_bytes()
        self._load()

    def new_file(self) -> Path:
        """A file that no object had before: one that is being read is never written again."""
        name = uuid.uuid4().hex
        folder = self.objects / name[:2]
        folder.mkdir(exist_ok=True)
        return folder / name

    def delete_later(self, file: Path) -> None:
        """A reader that has just found the object may still open its file."""
        self.deleted.append((time.monotonic(), file))

    def commit(self) -> None:
        """Write down what changed; called under the server's lock, before the response."""
        buckets = set(_backend().buckets)
        changed_buckets = buckets ^ self.known_buckets
        if changed_buckets or self.changed_keys:
            with self.index.transaction() as db:
                for name in changed_buckets:
                    self._save_bucket(db, name)
                for bucket, key in self.changed_keys:
                    self._save_key(db, bucket, key)
            self.known_buckets = buckets
            self.changed_keys.clear()
        while self.deleted and self.deleted[0][0] < time.monotonic() - KEEP_DELETED_S:
            self.deleted.popleft()[1].unlink(missing_ok=True)

    def _save_bucket(self, db: Any, name: str) -> None:
        bucket = _backend().buckets.get(name)
        if bucket is None:
            db.execute("delete from bucket where name = ?", (name,))
            db.execute("delete from object where bucket = ?", (name,))
        else:
            row = (name, bucket.region_name, bucket.creation_date.isoformat())
            db.execute("insert or replace into bucket values (?, ?, ?)", row)

    def _save_key(self, db: Any, bucket_name: str, name: str) -> None:
        bucket = _backend().buckets.get(bucket_name)
        key = bucket.keys.get(name) if bucket is not None else None
        if isinstance(key, StoredKey):
            row = (bucket_name, name, *key.to_row())
            db.execute("insert or replace into object values (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        else:
            db.execute("delete from object where bucket = ? and key = ?", (bucket_name, name))

    def _load(self) -> None:
        """Everything in the index, and away with files that are in no row of it: a write that
        was never acknowledged."""
        db = self.index.connection
        for name, region, created in db.execute("select * from bucket"):
            bucket = _backend().create_bucket(name, region)
            bucket.creation_date = datetime.datetime.fromisoformat(created)
        known: set[Path] = set()
        for bucket_name, name, *row in db.execute("select * from object"):
            key = StoredKey.from_row(bucket_name, name, row)
            known.add(key.file)
            dict.__setitem__(_backend().buckets[bucket_name].keys, name, [key])
        for file in self.objects.glob("*/*"):
            if file not in known:
                file.unlink()
        self.known_buckets = set(_backend().buckets)


class TrackedKeys(_VersionedKeyStore):
    """A bucket's objects; every change of one is noted for the commit."""

    def __init__(self, bucket: str, store: S3Store) -> None:
        super().__init__()
        self.bucket, self.store = bucket, store

    def __setitem__(self, key: str, value: Any) -> None:
        self.store.changed_keys.add((self.bucket, key))
        super().__setitem__(key, value)

    def setlist(self, key: Any, list_: Any) -> None:
        self.store.changed_keys.add((self.bucket, key))
        super().setlist(key, list_)

    def pop(self, key: str) -> None:  # type: ignore[override]
        self.store.changed_keys.add((self.bucket, key))
        super().pop(key)


class StoredBucket(models.FakeBucket):
    """A bucket that notes what happens to its objects."""

    store: S3Store

    def __init__(self, name: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(name, *args, **kwargs)
        self.keys = TrackedKeys(name, self.store)


@dataclass(frozen=True)
class StoredBytes:
    """An object's bytes that are on disk already, at the server's start."""

    file: Path
    size: int


class StoredKey(models.FakeKey):
    """An object, or an uploaded part, whose bytes are a file of their own."""

    store: S3Store
    file: Path

    def __new__(cls, *_args: Any, **_kwargs: Any) -> StoredKey:
        """moto remembers every instance of its models for good; a lake writes too many."""
        return object.__new__(cls)

    @property  # type: ignore[override]
    def value(self) -> bytes | memoryview:
        """The bytes; those of a large object mapped, so that a range costs what the range has."""
        if self.contentsize < MIN_MAPPED_BYTES:
            return self.file.read_bytes()
        with self.file.open("rb") as source:
            return memoryview(mmap.mmap(source.fileno(), 0, access=mmap.ACCESS_READ))

    @value.setter
    def value(self, new_value: bytes | memoryview | StoredBytes) -> None:
        self._value_buffer.close()
        if isinstance(new_value, StoredBytes):
            self.file, self.contentsize = new_value.file, new_value.size
            return
        self.file = self.store.new_file()
        self.file.write_bytes(new_value)
        self.contentsize = len(new_value)
        if self._etag is None:
            self._etag = hashlib.md5(new_value, usedforsecurity=False).hexdigest()

    def dispose(self, garbage: bool = False) -> None:
        """The object was deleted or overwritten. Garbage collection says nothing about that:
        it comes for every object at the server's end."""
        if not garbage and not self.disposed:
            self.disposed = True
            self.store.delete_later(self.file)

    def to_row(self) -> tuple[Any, ...]:
        checksum = {name: getattr(self, name) for name in CHECKSUM_FIELDS}
        return (
            str(self.file.relative_to(self.store.objects)),
            self.contentsize,
            self._etag,
            self.last_modified.isoformat(),
            self._storage_class,
            json.dumps(dict(self._metadata)),
            json.dumps(checksum),
        )

    @classmethod
    def from_row(cls, bucket: str, name: str, row: list[Any]) -> StoredKey:
        file, size, etag, modified, storage_class, metadata, checksum = row
        stored = StoredBytes(cls.store.objects / file, size)
        key = cls(name, stored, DEFAULT_ACCOUNT_ID, "us-east-1", etag=etag, bucket_name=bucket)
        key.last_modified = datetime.datetime.fromisoformat(modified)
        key._storage_class, key._version_id = storage_class, "null"
        key._metadata.update(json.loads(metadata))
        for field, value in json.loads(checksum).items():
            setattr(key, field, value)
        return key


def _backend() -> Any:
    return models.s3_backends[DEFAULT_ACCOUNT_ID]["aws"]


def _serve_mapped_bytes() -> None:
    """moto slices an object's bytes for a range as they are; only the slice becomes a response."""
    answer = S3Response.key_response

    def key_response(self: Any, request: Any, full_url: str, headers: Any) -> Any:
        status, response_headers, body = answer(self, request, full_url, headers)
        return status, response_headers, bytes(body) if isinstance(body, memoryview) else body

    S3Response.key_response = key_response  # type: ignore[method-assign]
