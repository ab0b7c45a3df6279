"""The objects under Firehose's error prefix: their lines, and where they go when those are done."""

from __future__ import annotations

import gzip
import io
import re
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime
from typing import IO, Any, Literal, NamedTuple, cast

from cdclake import naming

Kind = Literal["iceberg-failed", "processing-failed"]
KINDS: tuple[Kind, ...] = ("iceberg-failed", "processing-failed")  # in the order of their keys
_NAME = re.compile(r"(.+)-\d+-\d{4}(?:-\d\d){5}-[^/]+")  # as Firehose names an object
_GZIP = b"\x1f\x8b"
_REST = "-rest"


class Line(NamedTuple):
    """A failed record, as Firehose wrote it down."""

    kind: Kind
    stream: str  # that failed to deliver it; empty if the object's name does not say so
    lies_in: str  # the object's address, once it is redriven
    number: int  # from 1 on
    text: bytes


class FailedObject(NamedTuple):
    """An object of failed records."""

    folder: str  # the error prefix
    key: str

    @property
    def kind(self) -> Kind:
        """Who failed: the function, or the append."""
        return cast(Kind, self.key.removeprefix(f"{self.folder}/").partition("/")[0])

    @property
    def stream(self) -> str:
        """The stream's name; empty if this is no object of Firehose's."""
        named = _NAME.fullmatch(self.key.rpartition("/")[2])
        return named[1] if named else ""


class FailedObjects:
    """Those in `bucket` under the error prefixes `folders`, but for those of streams `foreign`."""

    def __init__(
        self, s3: Any, bucket: str, folders: Iterable[str], foreign: Collection[str]
    ) -> None:
        self._s3, self._bucket = s3, bucket
        self._folders, self._foreign = sorted(set(folders)), foreign

    def listed(self, *, after: str, before: datetime) -> Iterator[FailedObject]:
        """In the order of their keys those behind the key `after` that were written before."""
        pages = self._s3.get_paginator("list_objects_v2")
        for folder in self._folders:
            for kind in KINDS:
                prefix = f"{folder}/{kind}/"
                for page in pages.paginate(
                    Bucket=self._bucket, Prefix=prefix, StartAfter=after or prefix
                ):
                    for entry in page.get("Contents", []):
                        failed = FailedObject(folder, entry["Key"])
                        if entry["LastModified"] < before and failed.stream not in self._foreign:
                            yield failed

    def lines(self, failed: FailedObject) -> Iterator[Line]:
        """The object's lines; none if somebody else has moved it meanwhile."""
        try:
            stored = self._s3.get_object(Bucket=self._bucket, Key=failed.key)
        except self._s3.exceptions.NoSuchKey:
            return
        address = f"s3://{self._bucket}/{_redriven(failed)}"
        for number, text in enumerate(_unpacked(stored["Body"]), 1):
            if text.strip():
                yield Line(failed.kind, failed.stream, address, number, text.rstrip(b"\n"))

    def move(self, failed: FailedObject, rest: Iterable[bytes]) -> str | None:
        """Put the object aside, the lines `rest` but into one beside it; that one's key.

        What is cut short is done again: a copy twice is one.
        """
        kept, beside = b"".join(line + b"\n" for line in rest), None
        if kept:
            beside = failed.key + _REST
            self._s3.put_object(Bucket=self._bucket, Key=beside, Body=kept)
        source = {"Bucket": self._bucket, "Key": failed.key}
        try:
            self._s3.copy_object(Bucket=self._bucket, Key=_redriven(failed), CopySource=source)
        except self._s3.exceptions.NoSuchKey:  # somebody else has moved it
            return beside
        self._s3.delete_object(Bucket=self._bucket, Key=failed.key)
        return beside


def _redriven(failed: FailedObject) -> str:
    return naming.redriven_prefix(failed.folder) + failed.key.removeprefix(f"{failed.folder}/")


def _unpacked(body: Any) -> IO[bytes]:
    """The body's bytes, which a stream may compress."""
    buffered = io.BufferedReader(body)
    if buffered.peek(len(_GZIP)).startswith(_GZIP):
        return cast(IO[bytes], gzip.open(buffered))
    return buffered
