"""Objects that no reader of a table's current metadata can reach: found first, deleted later."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cdclake.jobs.erasure.stored_objects import ObjectVersion, object_versions


@dataclass(frozen=True, slots=True)
class OtherWriter:
    """Writer that may be about to commit new objects, which no snapshot has."""

    known: Collection[str]  # locations that some snapshot has had
    since: datetime  # older objects are committed already, or never will be


def removed_objects(
    client: Any,
    bucket: str,
    prefix: str,
    reachable: Collection[str],
    before: datetime,
    *,
    other: OtherWriter | None = None,
) -> Iterator[ObjectVersion]:
    """Yield the versions below the prefix that were written before then and are not reachable.

    `reachable` are locations. Delete markers are versions, too: their names may have values. What
    the other writer may commit is left out.
    """
    kept = _keys(bucket, reachable)
    known = _keys(bucket, other.known) if other is not None else set()
    for version in object_versions(client, bucket, prefix):
        is_new = other is not None and version.key not in known and version.modified >= other.since
        may_be_committed = is_new and version.is_newest and not version.is_marker
        if version.key not in kept and version.modified < before and not may_be_committed:
            yield version


def _keys(bucket: str, locations: Collection[str]) -> set[str]:
    return {location.removeprefix(f"s3://{bucket}/") for location in locations}


def delete_objects(client: Any, bucket: str, versions: Sequence[ObjectVersion]) -> int:
    """Delete exactly these versions; return how many there were."""
    for version in versions:
        place = {"Bucket": bucket, "Key": version.key}
        client.delete_object(**place, **version.identity)
    return len(versions)
