"""The Firehose stream of redriven rows, which go to any changelog and to quarantine.

A stream that reads Kafka accepts no direct puts, so each pipeline has a separate stream for them.
"""

from __future__ import annotations

import math

from cdclake import naming
from cdclake.firehose.stream import DeliveryStream
from cdclake.plan import Plan, Table

FUNCTION = "firehose_unwrap"  # in lambda/


def redrive_stream(plan: Plan) -> DeliveryStream | None:
    """Return the plan's redrive stream; None if Firehose delivers none of its tables."""
    if not plan.deliveries:
        return None
    return DeliveryStream(
        name=naming.REDRIVE,
        source="direct_put",
        tables=tuple(table for stream in plan.deliveries for table in stream.tables),
        routed=True,
        buffer_seconds=60,
        buffer_mib=64,
        function_seconds=10,
        function_mib=1,
        function_retries=3,
        retry_seconds=300,
        error_prefix=plan.deliveries[0].error_prefix,
        mib_per_second=1,
        function=FUNCTION,
    )


def lateness_seconds(plan: Plan, table: Table) -> int:
    """Return the time within which Firehose appends a row of the table; 0 without Firehose.

    The changelog has rows of two streams: of the table's, and of the redrive stream.
    """
    streams = [each for each in plan.deliveries if table.name in each.tables]
    redrive = redrive_stream(plan)
    if not streams or redrive is None:
        return 0
    return max(each.lateness_seconds for each in (*streams, redrive))


def lateness_minutes(plan: Plan, table: Table) -> int:
    """Return the same time for a reader, in minutes and not less."""
    return math.ceil(lateness_seconds(plan, table) / 60)
