"""Texts of instants: those of Python's own calendar."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cdclake.jobs.bulk_load.instant_texts import YEAR_1_US, YEAR_10000_US, instant_texts

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EDGES = [YEAR_1_US, YEAR_10000_US - 1, -1, 0, 951_782_399_999_999, 951_782_400_000_000]


@given(st.lists(st.integers(YEAR_1_US, YEAR_10000_US - 1)))
def test_texts_are_those_of_pythons_calendar(micros: list[int]) -> None:
    numbers = [*_EDGES, *micros]
    expected = [
        (_EPOCH + timedelta(microseconds=number)).replace(tzinfo=None) for number in numbers
    ]
    texts = instant_texts(np.array(numbers, np.int64)).to_pylist()
    assert texts == [f"{each.isoformat(timespec='microseconds')}Z" for each in expected]
