"""The Iceberg sink on a real lake, killed in its commits, compared with the changelog."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.iceberg_sink import APPENDED, WRITTEN, Kill, measure

pytestmark = [pytest.mark.local, pytest.mark.slow, pytest.mark.timeout(900)]


def test_a_sink_killed_in_its_commits_lacks_only_truncates(tmp_path: Path) -> None:
    kills = (Kill(WRITTEN, is_first=True), Kill(WRITTEN, 40), Kill(APPENDED))
    found = measure(tmp_path, "earliest", kills)
    assert found["state"] == "running"
    assert found["missing"] == {"t": 1}
    assert (found["committed_twice"], found["different_values"]) == (0, 0)
    assert found["unexplained_rows"] == 0
    # What the changelog has and the sink does not tell: sent again, not sent, too large.
    assert found["resent_rows"] > 0
    assert found["placeholders"] >= found["unsent_values"] > 0
    assert (found["oversized_rows"], found["oversized_quarantined"]) == (0, 1)


def test_the_sinks_default_loses_an_interrupted_first_commit(tmp_path: Path) -> None:
    """The reason for a setting of ours: this fails when Iceberg no longer needs it."""
    found = measure(tmp_path, "latest", (Kill(WRITTEN, is_first=True),))
    assert found["missing"]["r"] == 200
