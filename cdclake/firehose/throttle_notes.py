"""Notes on Direct PUT streams whose expected throughput is above Firehose's first limit.

Source: Firehose developer guide, "Considerations and limitations" of Apache Iceberg tables: an
append-only stream, as all here are, scales while it throttles.
"""

from __future__ import annotations

from collections.abc import Iterator

from cdclake.plan import Plan

_FAST_REGIONS = "us-east-1, us-west-2 and eu-west-1"
_FAST_MIB_PER_S, _DIRECT_PUT_MIB_PER_S = 5, 1


def throttle_notes(plan: Plan) -> Iterator[str]:
    """Yield a note for each stream that Firehose may throttle until it has scaled."""
    for stream in plan.put_streams:
        if stream.source == "direct_put" and stream.mib_per_second > _DIRECT_PUT_MIB_PER_S:
            yield (
                f"{stream.name}: Direct PUT begins with {_FAST_MIB_PER_S} MiB per second in"
                f" {_FAST_REGIONS}, and {_DIRECT_PUT_MIB_PER_S} elsewhere; above it Firehose"
                f" throttles until it has scaled to {stream.mib_per_second}: producers have to"
                " retry. For sudden bursts request a higher limit from AWS, or write"
                " `source: kinesis` before the first deployment"
            )
