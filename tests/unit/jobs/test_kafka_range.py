"""Bounds of a gap's read: Spark would resolve open ones at each evaluation."""

import pytest

from cdclake.jobs.stream.kafka_range import gap_ranges


@pytest.mark.parametrize(
    ("resume", "batch_ends", "gap"),
    [
        ({}, {}, (2, 9)),
        ({0: 5}, {}, (5, 9)),
        ({0: 5}, {0: 7}, (5, 7)),
        ({0: 1}, {}, (1, 9)),  # the read fails: Kafka has deleted the record
        ({0: 5}, {0: 4}, (5, 5)),  # the batch is repeated
        ({0: 9}, {}, (9, 9)),
    ],
)
def test_a_gap_has_explicit_offsets_in_every_partition(
    resume: dict[int, int], batch_ends: dict[int, int], gap: tuple[int, int]
) -> None:
    retained = {0: (2, 9), 1: (3, 8)}
    assert gap_ranges(retained, resume, batch_ends) == {0: gap, 1: (3, 8)}
