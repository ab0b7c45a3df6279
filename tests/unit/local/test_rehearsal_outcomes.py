"""Outcomes of a rehearsed migration, from what a lake reports of each table."""

from pathlib import Path
from typing import Any

import pytest

from cdclake.jobs.verify.report import Report, TableComparison
from cdclake.local import rehearsal
from cdclake.local.process.home import Home
from cdclake.local.rehearsal import DIFFERS, GOES_ON, REPORTED, STOPS, _compared, _outcome
from tests.unit.postgres.tables import plan

CHANGE = {"message": "column note was added", "remedy": "declare it"}
LINE: dict[str, Any] = {
    "table": "orders", "source": "public.orders", "state": "streaming", "quarantined": 0,
    "last_error": None, "source_changes": [], "relation_changes": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("line", "equal", "outcome"),
    [
        ({}, {"orders": True}, GOES_ON),
        ({"source_changes": [CHANGE]}, {"orders": True}, REPORTED),
        ({"relation_changes": [CHANGE]}, {"orders": True}, REPORTED),
        ({}, {}, REPORTED),  # not compared
        ({"source_changes": [CHANGE]}, {"orders": False}, DIFFERS),
        ({"state": "stopped"}, {"orders": False}, STOPS),
        ({"state": "stopped"}, {"orders": True}, STOPS),
    ],
)
def test_the_worst_finding_is_the_outcome(
    line: dict[str, Any], equal: dict[str, bool], outcome: str
) -> None:
    found = _outcome({**LINE, **line}, None, equal)
    assert found["outcome"] == outcome
    assert found["equal"] is equal.get("orders")


def test_each_change_is_shown_with_its_remedy() -> None:
    both = {"source_changes": [CHANGE], "relation_changes": [{**CHANGE, "kind": "dropped"}]}
    found = _outcome({**LINE, **both, "last_error": "stopped"}, "no rows", {"orders": True})
    assert found["changes"] == [CHANGE, CHANGE]
    assert (found["untouched"], found["error"]) == ("no rows", "stopped")


LATE = {"late": True, "error": "Firehose is behind"}


@pytest.mark.parametrize(
    ("found", "equal", "obstacle"),
    [
        ({}, True, None),
        ({"missing": 1}, False, None),
        ({"error": "the source no longer has the column 'v'"}, False, None),
        (LATE, None, "Firehose is behind"),
        ({**LATE, "missing": 1}, False, None),
    ],
)
def test_a_table_that_is_only_late_is_not_compared(
    found: dict[str, Any], equal: bool | None, obstacle: str | None,
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    def verify_lake(_: Any, wait_s: float, name: str) -> Report:
        table = TableComparison(table=name, source=f"public.{name}", **found)
        return Report(tables=[table], sample=None, rounds=1, seconds=wait_s)

    monkeypatch.setattr(rehearsal, "open_lake", lambda _: None)
    monkeypatch.setattr(rehearsal, "verify_lake", verify_lake)
    [table] = plan().all_tables
    by_table, reason = _compared(Home(tmp_path), plan())
    assert (by_table.get(table.name), reason) == (equal, obstacle)
