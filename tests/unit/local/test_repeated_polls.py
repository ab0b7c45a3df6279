"""Polls next to a comparison in Spark, whose job waits for them."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from cdclake.local import polls
from tests.unit.verify.lakes import make_table

CITY, TOWN = make_table(name="city"), make_table(name="town")


@pytest.fixture
def polled(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the polls; each takes no time."""
    found: list[Any] = []

    def start(lake: Any, job: str, tables: list[str]) -> Any:
        found.append((lake, job, tables))
        return SimpleNamespace(process=SimpleNamespace(wait=lambda: 0))

    monkeypatch.setattr(polls, "start_over", start)
    monkeypatch.setattr(polls, "_PAUSE_S", 0.01)
    return found


def test_tables_are_polled_until_the_comparison_ends(polled: list[Any]) -> None:
    lake: Any = "lake"
    with pytest.raises(RuntimeError), polls.repeated_polls(lake, [CITY, TOWN]):
        while len(polled) < 3:
            threading.Event().wait(0.01)
        raise RuntimeError
    ended = len(polled)
    threading.Event().wait(0.05)
    assert len(polled) == ended
    assert polled[0] == (lake, "poll_tables", ["city", "town"])


def test_without_polled_tables_nothing_is_started(polled: list[Any]) -> None:
    lake: Any = "lake"
    with polls.repeated_polls(lake, []):
        threading.Event().wait(0.05)
    assert polled == []
