"""The recording of the demo is small, a terminal can play it, and it ends with the next step."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest
from rich.cells import cell_len

from cdclake.cli.demo_text import NEXT_STEP
from tests.source_tree import PROJECT

CAST = PROJECT / "docs" / "demo.cast"
LARGEST_BYTES = 200_000
LONGEST_S = 60
COLUMNS = 80

Event = tuple[float, str, str]


@pytest.fixture(scope="module")
def events() -> list[Event]:
    _, *lines = CAST.read_text(encoding="utf-8").splitlines()
    return [tuple(json.loads(line)) for line in lines]


@pytest.fixture(scope="module")
def last_screen(events: list[Event]) -> list[str]:
    """The lines of the last screen: each event writes whole lines, at their place."""
    screen: dict[int, str] = {}
    for _, _, text in events:
        for row, line in re.findall(r"\x1b\[(\d+);1H\x1b\[2K(.*?)(?=\x1b\[\d+;1H|$)", text, re.S):
            screen[int(row)] = re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip()
    lines = [screen.get(row, "") for row in range(1, max(screen) + 1)]
    return lines[: max(row for row, line in enumerate(lines, 1) if line)]


def test_header_is_of_an_asciicast() -> None:
    header = json.loads(CAST.read_text(encoding="utf-8").splitlines()[0])
    assert header == {"version": 2, "width": COLUMNS, "height": 40, "title": "cdclake demo"}


def test_recording_is_small_and_short(events: list[Event]) -> None:
    assert CAST.stat().st_size < LARGEST_BYTES
    assert events[-1][0] <= LONGEST_S
    assert all(kind == "o" for _, kind, _ in events)
    assert all(before[0] <= after[0] for before, after in pairwise(events))


def test_recording_ends_with_a_changed_row_and_the_next_step(last_screen: list[str]) -> None:
    assert tuple(last_screen[-len(NEXT_STEP) :]) == NEXT_STEP
    [start] = [row for row, line in enumerate(last_screen) if line.startswith("one changed row")]
    rows = [line.split() for line in last_screen[start + 3 :] if line]
    status = [row[2] for row in rows if row[0] == "orders_changes"]
    total = [row[3] for row in rows if row[0] == "orders_changes"]
    assert len({*status}) > 1
    for place in ("orders_current", "PostgreSQL"):
        assert [place, status[-1], total[-1]] in rows
    assert any(line.startswith("the lake equals the source") for line in last_screen)


def test_recording_fits_the_terminal(last_screen: list[str]) -> None:
    assert [line for line in last_screen if cell_len(line) > COLUMNS] == []


def test_recording_shows_nothing_of_the_machine() -> None:
    assert not re.search(r"/(root|home|tmp|work)/|password=|://\w+:(?!PASSWORD)", CAST.read_text())
