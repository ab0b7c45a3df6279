"""Where the read of a gap begins: Spark refuses it unless every partition is named."""

import json

from cdclake.jobs.stream.kafka_range import starting_offsets


def test_a_partition_that_never_had_a_record_is_named_as_well() -> None:
    starts = json.loads(starting_offsets("shop.public.orders", range(3), {1: 7}))
    assert starts == {"shop.public.orders": {"0": -2, "1": 7, "2": -2}}
