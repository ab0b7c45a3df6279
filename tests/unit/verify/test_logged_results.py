"""Results of `verify` as its job logs them."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from cdclake import naming
from cdclake.jobs.verify import deployed_verify
from cdclake.jobs.verify.deep_comparison import DeepComparison, Finding
from cdclake.jobs.verify.report import Example, Report, TableComparison
from tests.spark.events import MemoryStore

KEY: dict[str, str | None] = {"mail": "ada@example.org"}
EXAMPLE = Example(key=KEY, kind="extra", columns=["mail"], source=None, lake=KEY)
FOUND = Finding(key=KEY, kind="extra", columns=["mail"], position=None)


@pytest.mark.parametrize("deep", [None, DeepComparison(extra=5, first=[FOUND])])
def test_the_log_has_counts_and_only_the_report_has_rows(
    deep: DeepComparison | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = TableComparison(table="t", source="public.t", extra=4, first=[EXAMPLE], deep=deep)
    control = MemoryStore()
    for name, answer in {
        "ObjectStore": control,
        "PlanWatcher": SimpleNamespace(read=lambda: None),
        "open_session": None,
        "compare": Report(tables=[table], sample=None, rounds=1, seconds=0.0),
    }.items():
        monkeypatch.setattr(deployed_verify, name, lambda *_, answer=answer: answer)
    with caplog.at_level(logging.INFO):
        assert deployed_verify.run({"control": "", "plan": "", "JOB_NAME": "j"}) == 1
    assert "'extra': 4" in caplog.text and "ada" not in caplog.text
    assert ("'extra': 5" in caplog.text) == (deep is not None)
    stored = control.read(naming.report_name(naming.VERIFY_JOB))
    assert stored is not None and "ada" in str(stored.content)
