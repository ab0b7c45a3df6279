"""The demo ends with a changed row and the next step, and is readable at 80 and 100 columns."""

from __future__ import annotations

import shlex
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from cdclake.cli.demo_text import sample_lines, shop_lines
from cdclake.cli.main import commands
from cdclake.local.demo.panel import LivePanel
from cdclake.local.demo.pipeline_stages import Hop, Look
from cdclake.local.demo.tasks import Stopwatch

NARROW = 80
MANY = 1_234_567


def table_of(name: str, **counts: int) -> dict[str, Any]:
    given = dict.fromkeys(("source_rows", "lake_rows", "inserts", "updates", "deletes"), MANY)
    none = dict.fromkeys(("missing", "extra", "different", "unsettled"), 0)
    return {"table": name, **given, **none, **counts}


def event(op: str, status: str, second: int) -> dict[str, Any]:
    return {"op": op, "status": status, "total": "1234567.89", "committed_us": second * 1_000_000}


@pytest.fixture
def answer() -> dict[str, Any]:
    return {
        "ok": True,
        "tables": [table_of("customers"), table_of("order_items")],
        "events": MANY,
        "events_expected": MANY,
        "events_per_s": 12345.6,
        "freshness_p50_ms": 123_456,
        "freshness_p95_ms": 123_456,
        "seconds_to_first_row": 1234.5,
        "seconds_total": 1234.5,
        "changed_row": {
            "table": "orders",
            "key": {"order_id": MANY},
            "events": [event("insert", "placed", 1), event("update", "delivered", 2)],
            "lake": {"status": "delivered", "total": "1234567.89"},
            "source": {"status": "delivered", "total": "1234567.89"},
        },
    }


def typed(lines: list[str]) -> list[list[str]]:
    return [shlex.split(line) for line in lines if line.startswith("  cdclake ")]


def test_no_line_of_the_end_is_wider_than_80_columns(answer) -> None:
    kept = {**answer, "home": "/home/user name/.cdclake/demo-abcdefgh"}
    for lines in (shop_lines(answer), shop_lines(kept), sample_lines({**answer, "statements": 12})):
        assert [line for line in lines if cell_len(line) > NARROW] == []


def test_the_changed_row_is_shown_in_changelog_lake_and_source(answer) -> None:
    lines = list(shop_lines(answer))
    start = lines.index(f"one changed row, order_id {MANY}:")
    assert [line.split() for line in lines[start + 1 : start + 7]] == [
        ["read", "from", "event", "status", "total", "committed", "(UTC)"],
        ["-" * 14, "-" * 6, "-" * 9, "-" * 10, "-" * 15],
        ["orders_changes", "insert", "placed", "1234567.89", "00:00:01.000"],
        ["orders_changes", "update", "delivered", "1234567.89", "00:00:02.000"],
        ["orders_current", "delivered", "1234567.89"],
        ["PostgreSQL", "delivered", "1234567.89"],
    ]


def test_only_the_newest_events_are_shown(answer) -> None:
    answer["changed_row"]["events"] = [event("update", "paid", second) for second in range(9)]
    lines = list(shop_lines(answer))
    assert f"one changed row, order_id {MANY} (5 earlier events not shown):" in lines
    assert sum(line.startswith("orders_changes ") for line in lines) == 4


def test_a_row_that_the_source_lost_is_shown_empty(answer) -> None:
    answer["changed_row"]["source"] = None
    assert "PostgreSQL" in [line.strip() for line in shop_lines(answer)]


def test_a_run_without_a_changed_row_ends_with_the_next_step(answer) -> None:
    lines = list(shop_lines({**answer, "changed_row": None}))
    assert not any(line.startswith("one changed row") for line in lines)
    assert typed(lines)


def test_the_last_lines_are_commands_that_the_cli_takes(answer) -> None:
    kept = {**answer, "home": "/tmp/demo"}
    for lines in (list(shop_lines(answer)), list(shop_lines(kept))):
        shown = typed(lines)
        assert shown and lines[-1].split() == shown[-1]
        for _, name, *words in shown:
            commands()[name].make_context(name, words)


def run_by_shell(lines: list[str], then: str) -> str:
    """Run the lines of `export` in a shell, and then a command."""
    exports = [line for line in lines if line.startswith("  export ")]
    done = subprocess.run(
        ["/bin/sh", "-c", "\n".join([*exports, then])], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("keep", [False, True])
def test_the_commands_are_found_by_a_shell(
    answer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: bool
) -> None:
    programs = tmp_path / "an environment" / "bin"
    programs.mkdir(parents=True)
    (programs / "cdclake").write_text("#!/bin/sh\n")
    (programs / "cdclake").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    home = {"home": f"{tmp_path}/my lake/demo-1"} if keep else {}
    lines = list(shop_lines({**answer, **home}))
    assert run_by_shell(lines, "command -v cdclake") == f"{programs}/cdclake\n"
    if keep:
        assert run_by_shell(lines, 'printf "$CDCLAKE_HOME"') == home["home"]
    (tmp_path / "link").symlink_to(programs)
    monkeypatch.setenv("PATH", f"{tmp_path}/link:/usr/bin:/bin")
    assert not any("export PATH" in line for line in shop_lines({**answer, **home}))


def test_differences_are_counted_and_named(answer) -> None:
    answer["tables"] = [table_of("orders", missing=2, different=1), table_of("customers")]
    lines = list(shop_lines({**answer, "ok": False}))
    assert next(line for line in lines if line.startswith("orders ")).split()[-1] == "3"
    assert "orders: 2 missing, 1 different" in lines
    assert any(line.startswith("the lake DIFFERS from the source") for line in lines)


@pytest.mark.parametrize("width", [NARROW, 100])
def test_the_panel_cuts_no_figure(width: int) -> None:
    screen = StringIO()
    console = Console(file=screen, width=width, height=40, force_terminal=True, color_system=None)
    panel = LivePanel(Stopwatch(), console, "cdclake demo: 500 rows/s for 20 s")
    look = Look(
        hops=(Hop(table="order_items", written=MANY, in_kafka=MANY, in_lake=MANY - 1000),),
        written=MANY, rate=12345, transactions=MANY, lag=MANY,
        batch=1234, batch_events=123_456, batch_seconds=123.4, freshness_s=123.4, slowest_s=123.4,
    )  # fmt: skip
    with panel.open():
        panel.begin("open for business")
        panel.end("open for business", "1,234,567 rows in 123,456 transactions, 12 rolled back")
        panel.begin("keep Java's classes for the next start")
        panel.look(look)
        panel.end("keep Java's classes for the next start")
    shown = screen.getvalue()
    for text in (
        *("rows changed", "in Kafka", "in the lake", "lag", "order_items", f"{MANY:,}"),
        *(f"in {MANY:,} transactions", f"lag {MANY:,}"),
        *("batch 1234: 123,456 events in 123.4 s", "fresh in 123.4 s", "(slowest 123.4 s)"),
        "keep Java's classes for the next start",
    ):
        assert text in shown, text
    assert max(cell_len(line.rstrip("\r")) for line in shown.splitlines()) >= NARROW - 1
