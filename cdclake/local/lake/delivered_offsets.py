"""Offsets that each table has reached, from the stream's progress or Firehose's commits."""

from __future__ import annotations

from collections.abc import Mapping

from cdclake import naming
from cdclake.jobs.control.progress import Progress
from cdclake.local.components.kafka import Broker
from cdclake.local.lake.topics import group_offsets
from cdclake.plan import Plan


def arrived_offsets(kafka: Broker, plan: Plan, progress: Progress) -> dict[str, Mapping[int, int]]:
    """Return by table name the offsets of its topic before which every event has been processed.

    An event has been processed if it is in the changelog, in quarantine, or under Firehose's error
    prefix.
    """
    arrived = progress.offsets()
    for stream in plan.deliveries:
        group = naming.delivery_group(plan.name, stream.name)
        offsets = group_offsets(kafka, group, stream.topic)
        arrived |= dict.fromkeys(stream.tables, offsets)
    return arrived
