"""The stream of Firehose by which redriven rows go: rows for any log, and for the quarantine.

Nobody can put into a stream that reads Kafka, so there is one of its own for each pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator

from cdclake import naming
from cdclake.delivery import DeliveryStream
from cdclake.plan import Plan

FUNCTION = "firehose_unwrap"


def change_streams(plan: Plan) -> Iterator[DeliveryStream]:
    """The streams that bring changes of tables, whose failed records can be redriven."""
    return (stream for stream in plan.deliveries if stream.function == "firehose_changes")


def redrive_stream(plan: Plan) -> DeliveryStream | None:
    """That of the plan; None if it has no stream of changes."""
    streams = list(change_streams(plan))
    if not streams:
        return None
    return DeliveryStream(
        name=naming.REDRIVE,
        source="direct_put",
        tables=tuple(table for stream in streams for table in stream.tables),
        routed=True,
        buffer_seconds=60,
        buffer_mib=64,
        function_seconds=10,
        function_mib=1,
        function_retries=3,
        retry_seconds=300,
        backup="failed",
        error_prefix=streams[0].error_prefix,
        mib_per_second=1,
        function=FUNCTION,
    )
