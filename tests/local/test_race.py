"""A leg of the race by each contender, on a real lake: its rows are the source's in the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.comparison import Arena
from benchmarks.race import flink
from benchmarks.race.measure import FAR, take_leg
from benchmarks.race.racers import FLINK_UPSERT, RACERS
from benchmarks.sizes import SIZES
from benchmarks.storage import in_folder

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.mark.parametrize("contender", RACERS)
def test_a_leg_leaves_the_rows_of_the_source(tmp_path: Path, contender: str) -> None:
    if contender == FLINK_UPSERT and not flink.JARS.is_dir():
        pytest.skip("`make bench SIZE=tiny ONLY=N10` fetches Flink")
    found = take_leg(Arena(tmp_path, in_folder), SIZES["tiny"].race, contender, FAR)
    assert found["wrong_rows"] == {}
    figures = found["figures"]
    assert figures["held_rate"] == SIZES["tiny"].race.most
    assert figures["common"]["p50_seconds"] <= figures["common"]["max_seconds"]
    assert figures["requests"]["s3"] > 0
