"""Buffers of a minute and less, at a rate that fills a MiB first: the full form of the measure."""

from pathlib import Path

import pytest

from benchmarks.buffering import measure_buffering
from benchmarks.sizes import SIZES
from scripts.buffering_page import interval_s

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(420)]
_LATE_S = 3.0  # a buffer begins with its first record, and records come every second


def test_buffers_commit_when_their_first_limit_is_reached(tmp_path: Path) -> None:
    measured = measure_buffering(SIZES["short"], tmp_path)
    rate = measured["records_a_second"] * measured["row_bytes"]
    by_size = 0
    for run in measured["runs"]:
        assert run["wrong"] is None
        expected = interval_s(run, rate)
        assert expected <= run["seconds_a_commit"] + 1
        assert run["seconds_a_commit"] <= expected + _LATE_S
        by_size += expected < run["buffer_seconds"]
    assert by_size == 1  # 60 s, 1 MiB
