"""Exit codes of a scheduled job's run, which `status` shows."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake import naming
from cdclake.hudi_copy import HudiCopy
from cdclake.iceberg.views import AppliedThrough
from cdclake.jobs.publish.copy_stamp import stamp_of
from cdclake.local import scheduled_job
from tests.unit.verify.lakes import make_table

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


@pytest.mark.parametrize(
    ("changed", "is_published"),
    [
        ({}, True),
        ({"table": ""}, True),
        ({"table": "another"}, False),
        ({"through": 6}, False),
        ({"rebuilt": "another"}, False),
    ],
)
def test_an_unchanged_copy_needs_no_job(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], is_published: bool
) -> None:
    table, applied = make_table(), AppliedThrough(ingested=7)
    copy = HudiCopy(
        name="copied", table=table.name, type="mor", schedule="rate(1 hour)", partition_by=None
    )
    plan = SimpleNamespace(copy=lambda _: copy, table=lambda _: table, lake_database="lake")
    stored = replace(stamp_of(copy, table, applied, ""), **changed)
    loaded = SimpleNamespace(load=lambda *_, **__: {table.name: None})
    monkeypatch.setattr(scheduled_job, "newest_stamped", lambda *_: SimpleNamespace(stamp=stored))
    monkeypatch.setattr(scheduled_job, "lake_reader", lambda _: loaded)
    monkeypatch.setattr(scheduled_job, "applied_at", lambda *_: applied)
    monkeypatch.setattr(scheduled_job, "last_erasure", lambda *_: "")
    lake: Any = SimpleNamespace(
        plan=plan, s3="http://127.0.0.1:1", warehouse_uri="s3://b/w", control=None
    )
    assert scheduled_job._is_published(lake, copy.name) is is_published
