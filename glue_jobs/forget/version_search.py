"""Search of whole buckets by Spark's tasks: a deployed lake is too large for one process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import boto3
from pyspark.sql import SparkSession

from cdclake.errors import ComponentFailed
from cdclake.jobs.erasure.sought_values import SoughtValue, SoughtValues
from cdclake.jobs.erasure.stored_objects import (
    Leftover,
    ObjectVersion,
    object_versions,
    search_version,
)

_TASKS_PER_CORE = 8  # objects differ in size


def search_buckets(
    spark: SparkSession, buckets: Iterable[str], values: Sequence[SoughtValue], own: tuple[str, ...]
) -> set[Leftover]:
    """Search every version in the buckets; `own` are prefixes of the values' table.

    Raise ComponentFailed for an object that cannot be read: what is not read is not proved.
    """
    client = boto3.client("s3")
    found: set[Leftover] = set()
    for bucket in buckets:
        versions = list(object_versions(client, bucket))
        context = spark.sparkContext
        slices = min(len(versions), context.defaultParallelism * _TASKS_PER_CORE) or 1
        search = _SearchVersions(bucket, tuple(values), own)
        for each in context.parallelize(versions, slices).mapPartitions(search).collect():
            if isinstance(each, _Unread):
                raise ComponentFailed(
                    f"s3://{bucket}/{each.key} cannot be searched: {each.error}",
                    "compare the file with its table's metadata, delete it if no table refers to"
                    " it, and run the command again",
                )
            found.add(each)
    return found


@dataclass(frozen=True, slots=True)
class _Unread:
    """Object that could not be searched; never the error's text, which may quote its content."""

    key: str
    error: str  # name of the exception's class


@dataclass(frozen=True, slots=True)
class _SearchVersions:
    """Function over the versions of one task."""

    bucket: str
    values: tuple[SoughtValue, ...]
    own: tuple[str, ...]

    def __call__(self, versions: Iterable[ObjectVersion]) -> Iterator[Leftover | _Unread]:
        client, sought = boto3.client("s3"), SoughtValues(self.values)
        for version in versions:
            try:
                yield from search_version(client, self.bucket, version, sought, self.own)
            except Exception as error:  # a task's log is kept, so it must not have the text
                cause = error.__cause__ or error
                yield _Unread(version.key, type(cause).__name__)
