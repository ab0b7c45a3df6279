"""moto's S3 with its objects on disk and its index in SQLite.

moto keeps an object's bytes and metadata in memory. Here two of its classes are replaced by
subclasses: objects, whose bytes are in a file, and buckets, which record what a request changes.
`S3Store.commit` stores the changes before the response is sent.

Unlike S3: versions, tags, ACLs, policies and unfinished multipart uploads are lost at a restart,
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
    """Storage of objects below `folder`/objects, and the changes of the current request."""

    def __init__(self, folder: Path, index: Index) -> None:
        self.objects = folder / "objects"
        self.index = index
        self.changed_keys: set[tuple[str, str]] = set()
        self.known_buckets: set[str] = set()
        self.deleted: deque[tuple[float, Path]] = deque()

    def install(self) -> None:
        """Replace moto's classes and load the stored objects."""
        self.objects.mkdir(parents=True, exist_ok=True)
        StoredKey.store = StoredBucket.store = self
        models.FakeKey = StoredKey  # type: ignore[misc]
        models.FakeBucket = StoredBucket  # type: ignore[misc]
        _serve_mapped_bytes()
        _hide_deleted_prefixes()
        self._load()

    def new_file(self) -> Path:
        """Return the path of a new file; existing files may be open and are never overwritten."""
        name = uuid.uuid4().hex
        folder = self.objects / name[:2]
        folder.mkdir(exist_ok=True)
        return folder / name

    def delete_later(self, file: Path) -> None:
        """Schedule a file's deletion, since a reader that has just found it may still open it."""
        self.deleted.append((time.monotonic(), file))

    def commit(self) -> None:
        """Store the changes; called under the server's lock, before the response."""
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
        """Load the index, and delete files without a row: their write was never acknowledged."""
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
    """A bucket's objects; every change is recorded for the commit."""

    def __init__(self, bucket: str, store: S3Store) -> None:
        super().__init__()
        self.bucket, self.store = bucket, store

    def __setitem__(self, key: str, value: Any) -> None:
        self.store.changed_keys.add((self.bucket, key))
        super().__setitem__(key, value)

    def setlist(self, key: Any, list_: Any) -> None:
        """Record the change and replace the key's versions."""
        self.store.changed_keys.add((self.bucket, key))
        super().setlist(key, list_)

    def pop(self, key: str) -> None:  # type: ignore[override]
        """Record the change and remove the key."""
        self.store.changed_keys.add((self.bucket, key))
        super().pop(key)


class StoredBucket(models.FakeBucket):
    """Bucket that records the changes of its objects."""

    store: S3Store

    def __init__(self, name: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(name, *args, **kwargs)
        self.keys = TrackedKeys(name, self.store)


@dataclass(frozen=True)
class StoredBytes:
    """Bytes of an object that are already on disk when the server starts."""

    file: Path
    size: int


class StoredKey(models.FakeKey):
    """Object or uploaded part with its bytes in a separate file."""

    store: S3Store
    file: Path

    def __new__(cls, *_args: Any, **_kwargs: Any) -> StoredKey:
        """Create an instance without registering it; moto would keep every instance forever."""
        return object.__new__(cls)

    def __deepcopy__(self, memo: dict[int, Any]) -> StoredKey:
        """Copy the entry without its bytes: to list versions, moto copies all of them."""
        copied = object.__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    @property  # type: ignore[override]
    def value(self) -> bytes | memoryview:
        """The object's bytes; large objects are memory-mapped, so that ranges are cheap to read."""
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
        """Schedule the file's deletion when the object is deleted or overwritten.

        Calls by the garbage collector are ignored: they occur for every object at shutdown.
        """
        if not garbage and not self.disposed:
            self.disposed = True
            self.store.delete_later(self.file)

    def to_row(self) -> tuple[Any, ...]:
        """Return the object's row of the index, without bucket and name."""
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
        """Create an object from its row of the index."""
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


def _hide_deleted_prefixes() -> None:
    """Patch moto to omit common prefixes that contain only deleted objects, as S3 does."""
    answer: Any = models.S3Backend.list_objects

    def list_objects(
        self: Any, bucket: Any, prefix: str | None, delimiter: str | None, **page: Any
    ) -> Any:
        found, folders, *rest = answer(self, bucket, prefix, delimiter, **page)
        if folders and bucket.is_versioned:
            start = len(prefix or "")
            live = {
                name[: name.index(str(delimiter), start) + len(str(delimiter))]
                for name, key in bucket.keys.items()
                if name.startswith(prefix or "")
                and str(delimiter) in name[start:]
                and not isinstance(key, models.FakeDeleteMarker)
            }
            folders = [folder for folder in folders if folder in live]
        return found, folders, *rest

    models.S3Backend.list_objects = list_objects  # type: ignore[method-assign, assignment]


def _serve_mapped_bytes() -> None:
    """Convert memory-mapped bytes in responses to `bytes`, after moto has cut out the range."""
    answer = S3Response.key_response

    def key_response(self: Any, request: Any, full_url: str, headers: Any) -> Any:
        status, response_headers, body = answer(self, request, full_url, headers)
        return status, response_headers, bytes(body) if isinstance(body, memoryview) else body

    S3Response.key_response = key_response  # type: ignore[method-assign]
