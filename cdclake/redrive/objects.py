"""Objects under Firehose's error prefix: their lines, and the move to `redriven/`."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from tempfile import TemporaryFile
from typing import IO, Any, Literal, NamedTuple, cast

from cdclake import naming
from cdclake.plan import Plan

Kind = Literal["iceberg-failed", "processing-failed"]
KINDS: tuple[Kind, ...] = ("iceberg-failed", "processing-failed")  # sorted: pages go on after a key
_NAME = re.compile(r"(.+)-\d+-\d{4}(?:-\d\d){5}-[^/]+")  # Firehose's names of objects
_GZIP = b"\x1f\x8b"
REST = "-rest"  # ends the names of objects with the lines of another that were not put


def error_prefix(plan: Plan) -> str:
    """Return the error prefix, the same for all Firehose streams of a plan; "" without any."""
    return next((stream.error_prefix for stream in plan.streams), "")


def failed_prefixes(folder: str) -> list[str]:
    """Return the prefixes of failed records below an error prefix, the redriven ones last.

    >>> failed_prefixes("firehose")
    ['firehose/iceberg-failed/', 'firehose/processing-failed/', 'firehose/redriven/']
    """
    return [*(f"{folder}/{kind}/" for kind in KINDS), naming.redriven_prefix(folder)]


class Line(NamedTuple):
    """A failed record, as Firehose stored it."""

    kind: Kind
    stream: str  # that failed to deliver it; empty if the object's name has none
    lies_in: str  # address of the object after its redrive
    number: int  # counted from 1
    text: bytes


class FailedObject(NamedTuple):
    """An object of failed records."""

    folder: str  # the error prefix
    key: str

    @property
    def kind(self) -> Kind:
        """Return what failed: the function, or the append."""
        return cast(Kind, self.key.removeprefix(f"{self.folder}/").partition("/")[0])

    @property
    def stream(self) -> str:
        """Return the stream's name; empty if Firehose did not write the object."""
        named = _NAME.fullmatch(self.key.rpartition("/")[2])
        return named[1] if named else ""


class FailedObjects:
    """Objects in `bucket` under the error prefixes `folders`, of the streams that are `wanted`."""

    def __init__(
        self, s3: Any, bucket: str, folders: Iterable[str], wanted: Callable[[str], bool]
    ) -> None:
        self._s3, self._bucket = s3, bucket
        self._folders, self._wanted = sorted(set(folders)), wanted

    def listed(self, *, after: str, before: datetime) -> Iterator[FailedObject]:
        """List the objects with keys after `after` that were written before `before`, by key."""
        pages = self._s3.get_paginator("list_objects_v2")
        for folder in self._folders:
            for kind in KINDS:
                prefix = f"{folder}/{kind}/"
                for page in pages.paginate(
                    Bucket=self._bucket, Prefix=prefix, StartAfter=after or prefix
                ):
                    for entry in page.get("Contents", []):
                        failed = FailedObject(folder, entry["Key"])
                        if entry["LastModified"] < before and self._wanted(failed.stream):
                            yield failed

    def lines(self, failed: FailedObject) -> Iterator[Line]:
        """Read the object's lines; none if another run has moved it meanwhile."""
        try:
            stored = self._s3.get_object(Bucket=self._bucket, Key=failed.key)
        except self._s3.exceptions.NoSuchKey:
            return
        yield from (line for line in self._every_line(failed, stored) if line.text.strip())

    def _every_line(self, failed: FailedObject, stored: Mapping[str, Any]) -> Iterator[Line]:
        address = self.address(_redriven(failed))
        for number, text in enumerate(_unpacked(stored["Body"]), 1):
            yield Line(failed.kind, failed.stream, address, number, text.rstrip(b"\n"))

    def address(self, key: str) -> str:
        """Return the address of an object in the bucket."""
        return f"s3://{self._bucket}/{key}"

    def move(self, failed: FailedObject, rest: Iterable[bytes]) -> str | None:
        """Move the object to `redriven/`, and keep the lines `rest` in an object next to it.

        Return the key of the latter, if any. The move can be repeated after a crash.
        """
        rest_key = self._keep(failed, rest)
        source = {"Bucket": self._bucket, "Key": failed.key}
        try:
            self._s3.copy_object(Bucket=self._bucket, Key=_redriven(failed), CopySource=source)
        except self._s3.exceptions.NoSuchKey:  # another run has moved it
            return rest_key
        self._s3.delete_object(**source)
        return rest_key

    def move_without(
        self, failed: FailedObject, rest: Iterable[bytes], is_left_out: Callable[[Line], bool]
    ) -> str | None:
        """Do the same, but leave lines out, and delete the version that has them.

        The others keep their numbers: the quarantine refers to them by these.
        """
        rest_key = self._keep(failed, rest)
        place = {"Bucket": self._bucket, "Key": failed.key}
        try:
            stored = self._s3.get_object(**place)
        except self._s3.exceptions.NoSuchKey:  # another run has moved it
            return rest_key
        with TemporaryFile() as file:  # an object may be larger than a function's memory
            if self._write_others(failed, stored, is_left_out, into=file):
                file.seek(0)
                self._s3.put_object(Bucket=self._bucket, Key=_redriven(failed), Body=file)
        version = {"VersionId": stored["VersionId"]} if "VersionId" in stored else {}
        self._s3.delete_object(**place, **version)
        return rest_key

    def _write_others(
        self,
        failed: FailedObject,
        stored: Mapping[str, Any],
        is_left_out: Callable[[Line], bool],
        *,
        into: IO[bytes],
    ) -> bool:
        """Write the lines, compressed, an empty one for each left out; return if any is written."""
        is_any = False
        with gzip.open(into, "wb") as packed:
            for line in self._every_line(failed, stored):
                is_kept = bool(line.text.strip()) and not is_left_out(line)
                is_any = is_any or is_kept
                packed.write(line.text + b"\n" if is_kept else b"\n")
        return is_any

    def _keep(self, failed: FailedObject, rest: Iterable[bytes]) -> str | None:
        """Write the lines into an object next to the failed one; return its key, None for none."""
        kept = b"".join(line + b"\n" for line in rest)
        if not kept:
            return None
        rest_key = failed.key + REST
        self._s3.put_object(Bucket=self._bucket, Key=rest_key, Body=kept)
        return rest_key


def _redriven(failed: FailedObject) -> str:
    return naming.redriven_prefix(failed.folder) + failed.key.removeprefix(f"{failed.folder}/")


def _unpacked(body: Any) -> IO[bytes]:
    """Open the body, which a stream may have compressed."""
    buffered = io.BufferedReader(body)
    if buffered.peek(len(_GZIP)).startswith(_GZIP):
        return cast(IO[bytes], gzip.open(buffered))
    return buffered


def raw_data(text: bytes) -> bytes:
    """Return the record in a line; raise ValueError if there is none."""
    line = json.loads(text)
    raw = line.get("rawData") if type(line) is dict else None
    if type(raw) is not str:
        raise ValueError("no rawData")
    return base64.b64decode(raw, validate=True)
