"""The deployed jobs ask AWS for nothing that the committed recording lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.local.deployed_runs import lake_of_jobs
from tests.recorded_requests.record import PARTS, known, record
from tests.spark.hudi_jvm import needs_hudi

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(1200), needs_hudi]


@pytest.mark.parametrize("part", range(len(PARTS)))
def test_the_recording_has_what_the_jobs_ask_for(tmp_path: Path, part: int) -> None:
    with lake_of_jobs(tmp_path) as running:
        found = record(running, PARTS[part])
    recorded = known()
    missing = {job: sorted({*calls} - {*recorded[job]}) for job, calls in found.items()}
    assert not any(missing.values()), f"`make record-requests` and review: {missing}"
