"""Outcomes of a rehearsed migration, from what a lake reports of each table."""

from typing import Any

import pytest

from cdclake.local.rehearsal import DIFFERS, GOES_ON, REPORTED, STOPS, _outcome

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
