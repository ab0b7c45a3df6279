"""What a command's steps look like on a terminal, without one, and for programs."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
import threading

import pytest
from rich.console import Console

from cdclake.activity import Advance, Step, step
from cdclake.cli.output import ask_to_continue, say, say_progress, showing_progress
from cdclake.cli.progress_display import (
    LineWriter,
    PanelWriter,
    advance_text,
    json_line,
    text_line,
)
from cdclake.errors import InputError
from tests.source_tree import PROJECT

SHOWN = """
import sys, time
from cdclake.activity import Advance, step
from cdclake.cli.output import say, showing_progress
with showing_progress(as_json=False):
    with step("read the tables") as shown:
        shown.note(Advance(done=5, total=10, now="reads artworks"))
        time.sleep(0.6)
    say("artworks: 10 rows read")
    with step("after the answer"):
        time.sleep(0.6)
"""


def step_at(seconds: float, advance: Advance | None = None, *, ended: bool = False) -> Step:
    made = Step("read", begun=100.0, ended=100.0 + seconds if ended else None)
    if advance is not None:
        made.note(advance)
    return made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(112, 1000))
    monkeypatch.setattr("cdclake.activity.time.monotonic", lambda: float(next(now)))


@pytest.mark.parametrize(
    ("advance", "text"),
    [
        (None, ""),
        (Advance(now="the stream commits it"), "the stream commits it"),
        (Advance(done=1), "1 row"),
        (Advance(done=45000, total=123899), "45,000 of 123,899 rows"),
        (Advance(done=3, total=9, unit="tables", size=15, now="t3"), "t3, 3 of 9 tables, 15 B"),
    ],
)  # fmt: skip
def test_advance(advance: Advance | None, text: str) -> None:
    assert advance_text(step_at(1, advance)) == text


def test_rate_and_time_left_are_shown_while_it_runs(clock: None) -> None:
    running = step_at(1, Advance(done=0, total=1000))
    running.note(Advance(done=100, total=1000))
    text = advance_text(running)
    assert text.startswith("100 of 1,000 rows, ") and " rows/s, " in text and "s left" in text
    running.ended = 200.0
    assert advance_text(running) == "100 of 1,000 rows"


def test_the_panel_shows_the_last_steps_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setenv("COLUMNS", "80")
    panel = PanelWriter()
    for count in range(30):
        panel.begin(Step(f"step {count}"))
    shown = io.StringIO()
    Console(file=shown, width=80).print(panel.draw())
    lines = shown.getvalue().splitlines()
    assert len(lines) == 9 and "step 29" in lines[-1]


def test_line_of_text_and_of_json() -> None:
    done = step_at(41, Advance(done=7, total=7), ended=True)
    assert text_line(done) == "   41 s  read done: 7 of 7 rows"
    assert json.loads(json_line(done))["progress"] == {
        "step": "read", "state": "ended", "seconds": 41.0, "done": 7, "total": 7, "unit": "rows",
        "bytes": None, "now": None, "per_second": None, "seconds_left": None,
    }  # fmt: skip
    assert json.loads(json_line(step_at(1, ended=True)))["progress"].keys() == {
        *("step", "state", "seconds")
    }


def test_lines_are_written_at_intervals_about_the_innermost_step() -> None:
    lines: list[str] = []
    written = threading.Event()

    def write(line: str) -> None:
        lines.append(line)
        written.set()

    writer = LineWriter(write, lambda each: each.name, writes_steps=False, interval_s=0.01)
    writer.open()
    outer, inner = Step("outer"), Step("inner")
    writer.begin(outer)
    writer.begin(inner)
    written.clear()
    assert written.wait(10)
    writer.close()
    count = len(lines)
    assert lines[-1] == "inner"
    writer.end(Step("another"))
    assert len(lines) == count


def test_short_steps_are_not_worth_a_line() -> None:
    lines: list[str] = []
    writer = LineWriter(lines.append, text_line, writes_steps=False)
    writer.open()
    for seconds in (1, 12):
        ended = step_at(seconds, ended=True)
        writer.begin(ended)
        writer.end(ended)
    writer.close()
    assert lines == ["   12 s  read done"]


def test_programs_get_the_beginning_and_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    with showing_progress(as_json=True):
        with step("first"):
            pass
        say("{}")
    shown = capsys.readouterr()
    assert shown.out == "{}\n"
    states = [json.loads(line)["progress"]["state"] for line in shown.err.splitlines()]
    assert states == ["running", "ended"]


def test_terminal_shows_the_steps_in_place_and_keeps_the_answer() -> None:
    main, terminal = pty.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-c", SHOWN], cwd=PROJECT, stdout=subprocess.PIPE, stderr=terminal,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"}, text=True, check=True,
        )  # fmt: skip
        drawn = os.read(main, 1 << 16).decode()
    finally:
        os.close(main)
        os.close(terminal)
    assert done.stdout == "artworks: 10 rows read\n"
    assert "read the tables" in drawn and "reads artworks, 5 of 10 rows" in drawn
    assert "\x1b[2K" in drawn  # the lines are erased at the end
    assert "after the answer" in drawn


ASKED = """
import time
from cdclake.activity import step
from cdclake.cli.output import ask_to_continue, showing_progress
with showing_progress(as_json=False), step("compare the file"):
    time.sleep(0.6)
    ask_to_continue("Go on?")
    time.sleep(0.6)
"""


def test_a_question_is_asked_after_the_steps_are_removed() -> None:
    main, terminal = pty.openpty()
    try:
        os.write(main, b"y\n")
        subprocess.run(
            [sys.executable, "-c", ASKED], cwd=PROJECT, check=True,
            stdin=terminal, stdout=terminal, stderr=terminal,
            env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
        )  # fmt: skip
        drawn = os.read(main, 1 << 16).decode()
    finally:
        os.close(main)
        os.close(terminal)
    before, _, after = drawn.partition("Go on? [y/N]: ")
    assert "compare the file" in before and before.rstrip("\r").endswith("\x1b[2K")
    assert "compare the file" not in after


def test_another_answer_than_yes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    with pytest.raises(InputError, match="nothing was changed") as caught:
        ask_to_continue("Go on?")
    assert "--yes" in caught.value.remedy


def test_lines_of_a_show_are_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    say_progress("  ✓ started Kafka\n")
    shown = capsys.readouterr()
    assert (shown.out, json.loads(shown.err)) == ("", {"progress": {"step": "✓ started Kafka"}})
