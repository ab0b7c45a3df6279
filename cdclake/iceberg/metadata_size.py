"""Size of a changelog's metadata, which follows from how long its snapshots are kept."""

from __future__ import annotations

from dataclasses import dataclass

from cdclake.plan import Plan

_HOURLY_SNAPSHOTS = 5 * 24  # one per hour for five days (decision 28)
_KILOBYTES_PER_SNAPSHOT = 1.0  # in metadata.json, measured (decision 28)
_SECONDS_PER_HOUR = 3600


@dataclass(frozen=True, slots=True)
class MetadataSize:
    """Greatest size of a table's `metadata.json`."""

    snapshots: int
    kilobytes: int


def changelog_metadata(plan: Plan) -> MetadataSize:
    """Estimate the metadata of a changelog with a commit in each of the stream's batches.

    >>> from types import SimpleNamespace
    >>> changelog_metadata(SimpleNamespace(stream_readers_hours=2, trigger_seconds=10))
    MetadataSize(snapshots=1200, kilobytes=1200)
    """
    # A snapshot is kept until its hour has ended, so one hour longer.
    kept_s = (plan.stream_readers_hours + 1) * _SECONDS_PER_HOUR
    snapshots = kept_s // plan.trigger_seconds + _HOURLY_SNAPSHOTS
    return MetadataSize(snapshots, round(snapshots * _KILOBYTES_PER_SNAPSHOT))
