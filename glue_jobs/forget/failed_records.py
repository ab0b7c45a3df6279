"""Erased events below Firehose's error prefixes: failed records, and those that were redriven."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cdclake.erasures import ErasedKeys
from cdclake.jobs.erasure.stored_objects import ObjectVersion, object_versions
from cdclake.plan import Plan, Table
from cdclake.redrive.failed_events import FailedEvents
from cdclake.redrive.objects import failed_prefixes, raw_data

_GZIP = b"\x1f\x8b"


def error_prefixes(plan: Plan, table: Table) -> list[str]:
    """Return the error prefixes below which there may be failed records of the table."""
    folders = {stream.error_prefix for stream in plan.deliveries if table.name in stream.tables}
    if folders:
        folders.add(plan.deliveries[0].error_prefix)  # the redrive stream's
    return sorted(folders)


@dataclass(frozen=True, slots=True)
class FailedRecords:
    """Failed records in a bucket, of erased keys; `s3` is boto3's client."""

    s3: Any
    bucket: str
    events: FailedEvents
    erased: Mapping[str, ErasedKeys]  # by table

    def remove(self, error_prefix: str) -> int:
        """Remove the records from all objects, and older versions with some of them.

        Those that were redriven come last: a redrive moves objects there meanwhile. Their lines
        become empty: the quarantine refers to the others by their numbers. Returns how many records
        the newest versions had.
        """
        removed = 0
        for prefix in failed_prefixes(error_prefix):
            for version in list(object_versions(self.s3, self.bucket, prefix)):
                if not version.is_marker:
                    removed += self._remove_from(version)
        return removed

    def _remove_from(self, version: ObjectVersion) -> int:
        place = {"Bucket": self.bucket, "Key": version.key}
        try:
            content = self.s3.get_object(**place, **version.identity)["Body"].read()
        except self.s3.exceptions.NoSuchKey:  # a redrive has moved it
            return 0
        plain = gzip.decompress(content) if content.startswith(_GZIP) else content
        lines = plain.splitlines(keepends=True)
        erased = [self._is_erased(line) for line in lines]
        if not any(erased):
            return 0
        kept = b"".join(b"\n" if gone else line for line, gone in zip(lines, erased, strict=True))
        if version.is_newest and kept.strip():
            self.s3.put_object(**place, Body=kept)
        if not version.is_newest or not kept.strip() or version.identity:
            self.s3.delete_object(**place, **version.identity)
        return sum(erased) if version.is_newest else 0

    def _is_erased(self, line: bytes) -> bool:
        try:
            event = self.events.read(raw_data(line))
        except ValueError:  # no line that Firehose wrote
            return False
        return event is not None and event.is_erased(self.erased)
