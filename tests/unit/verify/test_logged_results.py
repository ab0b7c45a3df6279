"""Results of `verify` as its job logs them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import SimpleNamespace

import pytest

from cdclake import metrics, naming
from cdclake.jobs.runtime.metrics import Metrics
from cdclake.jobs.verify import deployed_verify
from cdclake.jobs.verify.deep_comparison import DeepComparison, Finding
from cdclake.jobs.verify.report import Example, Report, TableComparison
from tests.spark.events import MemoryStore

KEY: dict[str, str | None] = {"mail": "ada@example.org"}
EXAMPLE = Example(key=KEY, kind="extra", columns=["mail"], source=None, lake=KEY)
FOUND = Finding(key=KEY, kind="extra", columns=["mail"], position=None)


def run_with(monkeypatch: pytest.MonkeyPatch, table: TableComparison, **given: str) -> MemoryStore:
    """Run the job with these arguments; it finds this table's result."""
    control = MemoryStore()
    for name, answer in {
        "ObjectStore": control,
        "PlanWatcher": SimpleNamespace(read=lambda: None),
        "open_session": None,
        "compare": Report(tables=[table], sample=None, rounds=1, seconds=0.0),
    }.items():
        monkeypatch.setattr(deployed_verify, name, lambda *_, answer=answer: answer)
    assert deployed_verify.run({"control": "", "plan": "", "JOB_NAME": "j", **given}) == 1
    return control


@pytest.mark.parametrize("deep", [None, DeepComparison(extra=5, first=[FOUND])])
def test_the_log_has_counts_and_only_the_report_has_rows(
    deep: DeepComparison | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table = TableComparison(table="t", source="public.t", extra=4, first=[EXAMPLE], deep=deep)
    with caplog.at_level(logging.INFO):
        control = run_with(monkeypatch, table)
    assert "'extra': 4" in caplog.text and "ada" not in caplog.text
    assert ("'extra': 5" in caplog.text) == (deep is not None)
    stored = control.read(naming.report_name(naming.VERIFY_JOB))
    assert stored is not None and "ada" in str(stored.content)


@pytest.mark.parametrize(
    ("given", "is_whole"),
    [
        ({"deep": "true", "run": "verify_tables-1"}, True),
        ({"tables": "t"}, False),
        ({"sample": "100"}, False),
        ({"reader": "spark"}, False),
    ],
)
def test_only_a_whole_comparison_publishes_verified_tables(
    given: dict[str, str], is_whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The alarm `verify-overdue` counts the points of the second metric."""
    published: dict[metrics.Metric, float] = {}

    def publish(_: object, gather: Callable[[], Mapping[metrics.Metric, float]]) -> None:
        published.update(gather())

    monkeypatch.setattr(Metrics, "publish", publish)
    run_with(monkeypatch, TableComparison(table="t", source="public.t", extra=4), **given)
    expected: dict[metrics.Metric, float] = {metrics.FAILED_TABLES: 1}
    assert published == expected | ({metrics.VERIFIED_TABLES: 0} if is_whole else {})
