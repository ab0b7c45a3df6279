"""Where `cdclake sql` takes its statement from, and how relative times are read."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cdclake.cli import main as command
from cdclake.cli import sql
from cdclake.errors import InputError
from cdclake.jobs.reader.as_of import commit_micros
from cdclake.jobs.reader.point_in_time import at_time
from cdclake.time_spans import parse_time

NOW = datetime(2026, 11, 26, 9, tzinfo=UTC)
NOT_RUNNING = 3  # the statement was read, and the lake is asked for


@pytest.fixture(autouse=True)
def no_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDCLAKE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    Path("query.sql").write_text("SELECT 1")
    Path("empty.sql").write_text("\n")


def code(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        command.main(["sql", *words])
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("-f", "query.sql"), NOT_RUNNING),
        (("-f", "query.sql", "--at", "-5m"), NOT_RUNNING),
        (("-f", "empty.sql"), 2),
        (("-f", "nowhere.sql"), 2),
        (("SELECT 1", "-f", "query.sql"), 2),
        (("SELECT 1", "--json", "--format", "csv"), 2),
        (("SELECT 1", "--json", "--format", "json"), NOT_RUNNING),
        (("SELECT 1", "--format", "xml"), 2),
        (("SELECT 1", "--format", "parquet", "--target", "aws", "--engine", "athena"), 2),
    ],
)
def test_statement_from_arguments_and_files(words: tuple[str, ...], expected: int) -> None:
    assert code(*words) == expected


@pytest.mark.parametrize(("text", "expected"), [("SELECT 1\n", NOT_RUNNING), (" \n", 2)])
def test_statement_from_standard_input(
    text: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert code() == expected


def test_a_carriage_return_of_a_literal_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    query = "SELECT 'a\r\nb\rc'"
    Path("query.sql").write_bytes(query.encode())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(query.encode())))
    assert sql._text(None, Path("query.sql"), None) == sql._text(None, None, None) == query


def test_no_shell_starts_if_its_output_is_not_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr("sys.stdin", terminal)
    assert code() == 2


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("-30s", timedelta(seconds=30)),
        (" -5m", timedelta(minutes=5)),
        ("-2d", timedelta(days=2)),
        ("-1w", timedelta(weeks=1)),
        ("2026-11-26T08:00", timedelta(hours=1)),
        ("2026-11-26T09:00+01:00", timedelta(hours=1)),
    ],
)
def test_times(text: str, ago: timedelta) -> None:
    assert parse_time(text, NOW) == NOW - ago


@pytest.mark.parametrize("text", ["5m", "-5", "-m", "-5y", "yesterday", "", "-99999999w", "--5m"])
def test_no_times(text: str) -> None:
    assert parse_time(text, NOW) is None


def test_options_take_relative_times() -> None:
    before = datetime.now(UTC)
    at, as_of = at_time("-1h").milliseconds, commit_micros("-1h")
    after = datetime.now(UTC)
    earliest, latest = (each - timedelta(hours=1, milliseconds=1) for each in (before, after))
    assert at is not None
    for micros in (at * 1000, as_of):
        assert earliest.timestamp() <= micros / 1e6 <= latest.timestamp() + 0.002
    with pytest.raises(InputError) as refused:
        at_time("5 minutes")
    assert "-5m" in refused.value.remedy
