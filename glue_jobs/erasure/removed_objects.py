"""Objects that no reader of a table's current metadata can reach: found first, deleted later."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

from cdclake.jobs.erasure.stored_objects import ObjectVersion, object_versions


def removed_objects(
    client: Any, bucket: str, prefix: str, reachable: Collection[str], before: datetime
) -> Iterator[ObjectVersion]:
    """Yield the versions below the prefix that were written before then and are not reachable.

    `reachable` are locations. Delete markers are versions, too: their names may have values.
    """
    kept = {location.removeprefix(f"s3://{bucket}/") for location in reachable}
    for version in object_versions(client, bucket, prefix):
        if version.key not in kept and version.modified < before:
            yield version


def delete_objects(client: Any, bucket: str, versions: Sequence[ObjectVersion]) -> int:
    """Delete exactly these versions; return how many there were."""
    for version in versions:
        place = {"Bucket": bucket, "Key": version.key}
        client.delete_object(**place, **version.identity)
    return len(versions)
