"""How far each table has come: by the stream's progress, or by what Firehose has committed."""

from __future__ import annotations

from collections.abc import Mapping

from cdclake import naming
from cdclake.jobs.control.progress import Progress
from cdclake.local.lake.topics import group_offsets
from cdclake.plan import Plan


def arrived_offsets(kafka: str, plan: Plan, progress: Progress) -> dict[str, Mapping[int, int]]:
    """By lake name, behind which offsets of its topic all of a table is in its log, or kept apart.

    Refused events are in quarantine then, or under Firehose's error prefix.
    """
    arrived = progress.offsets()
    for stream in plan.deliveries:
        group = naming.delivery_group(plan.name, stream.name)
        offsets = group_offsets(kafka, group, stream.topic)
        arrived |= dict.fromkeys(stream.tables, offsets)
    return arrived
