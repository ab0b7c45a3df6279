"""Exit codes of a scheduled job's run, which `status` shows."""

from __future__ import annotations

from typing import Any

import pytest

from cdclake import naming
from cdclake.local import scheduled_job

BROKEN = {"table": "a", "error": "quality rules failed", "failed_rules": [{"rule": "r"}]}
FAILED = {"table": "b", "error": "a file is missing", "failed_rules": []}
FINE: dict[str, Any] = {"table": "c", "error": None, "failed_rules": []}


@pytest.mark.parametrize(
    ("lines", "code"), [([FINE], 0), ([BROKEN, FINE], 1), ([BROKEN, FAILED], 4), ([FAILED], 4)]
)
def test_broken_rules_alone_are_no_failure(
    monkeypatch: pytest.MonkeyPatch, lines: list[dict[str, Any]], code: int
) -> None:
    report = {"ok": lines == [FINE], "tables": lines}
    monkeypatch.setattr(scheduled_job, "run_job", lambda *_: report)
    assert scheduled_job.run(None, naming.CHECK_JOB) == code  # type: ignore[arg-type]
