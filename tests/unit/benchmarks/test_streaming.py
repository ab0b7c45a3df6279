"""What a trial of a rate says about the next one to try."""

from __future__ import annotations

import pytest

from benchmarks.streaming import Trial


@pytest.mark.parametrize(
    ("growth", "arrived"),
    [(0.0, 9000), (0.5, 6000), (2.0, 3000), (-0.1, 9000)],
)
def test_what_the_lag_grew_by_did_not_arrive(growth: float, arrived: float) -> None:
    assert Trial(written=9000, growth=growth, held=False).arrived == pytest.approx(arrived)
