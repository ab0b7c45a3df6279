"""Which records of a topic a trace reads."""

from __future__ import annotations

import pytest

from cdclake.local.trace.kafka_events import _first, _older
from cdclake.trace.trace_facts import TracedEvent


@pytest.mark.parametrize(
    ("low", "end", "arrived", "first"),
    [
        (0, 100, 100, 0),  # a short topic is searched whole
        (0, 5_000_000, 5_000_000, 4_980_000),
        (0, 5_000_000, 4_500_000, 4_500_000),  # what the lake has not read
        (0, 5_000_000, 1_000, 4_000_000),
        (0, 5_000_000, None, 4_000_000),
        (4_990_000, 5_000_000, 5_000_000, 4_990_000),
    ],
)
def test_what_the_lake_has_processed_is_not_searched(
    low: int, end: int, arrived: int | None, first: int
) -> None:
    assert _first(low, end, arrived) == first


def test_only_retained_records_before_the_searched_ones_are_read_by_their_offset() -> None:
    events = [TracedEvent(partition=0, offset=offset) for offset in (5, 99, 100, 400, 500)]
    assert _older([*events, TracedEvent()], {0: (100, 500, 900)}) == [(0, 100), (0, 400)]
    many = [TracedEvent(partition=0, offset=offset) for offset in range(100, 200)]
    assert _older(many, {0: (0, 500, 900)}) == [(0, offset) for offset in range(180, 200)]
