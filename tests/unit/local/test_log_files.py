"""The logs of a local lake's components in the order of time."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from cdclake.errors import InputError, NotRunning
from cdclake.local.log_files import log_lines
from cdclake.local.process.child_process import rotate, rotated_log
from cdclake.local.process.home import Home

LONG_AGO = datetime.now(UTC) - timedelta(days=20_000)
POSTGRES = """\
2026-11-26 06:00:00.250 UTC [7] x@y ERROR:  column "a" does not exist
2026-11-26 06:00:02.000 UTC [7] x@y STATEMENT:  SELECT a
\tFROM t
"""
CONNECT = "[2026-11-26 06:00:01,100] WARN too slow (io.debezium)\njava.lang.Error: x\n"
STREAM = (
    '{"at": "2026-11-26T06:00:01.500+00:00", "level": "INFO", "message": "batch 1", "batch": 1}\n'
    '{"at": "2026-11-26T06:00:01.600+00:00", "level": "ERROR", "message": "table t stopped: é",'
    ' "table": "t", "error": "Traceback"}\n'
    '{"half'
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path)
    made.logs.mkdir()
    for name, text in (("postgres", POSTGRES), ("connect", CONNECT), ("stream", STREAM)):
        made.log(name).write_text(text)
    return made


def test_lines_are_in_the_order_of_time_and_keep_their_continuation(home: Home) -> None:
    found = [(line.component, line.text) for line in log_lines(home, None, LONG_AGO, follow=False)]
    assert found == [
        ("postgres", '[7] x@y ERROR:  column "a" does not exist'),
        ("connect", "WARN too slow (io.debezium)"),
        ("connect", "java.lang.Error: x"),
        ("stream", "batch 1 batch=1"),
        ("stream", "ERROR table t stopped: é table=t\nTraceback"),
        ("postgres", "[7] x@y STATEMENT:  SELECT a"),
        ("postgres", "\tFROM t"),
    ]


def test_times_without_fraction_are_read(home: Home) -> None:
    home.log("supervisor").write_text("2026-11-26T06:00:01Z stream ended with 1; starting again\n")
    [line] = log_lines(home, "supervisor", LONG_AGO, follow=False)
    assert line.text == "stream ended with 1; starting again"
    assert line.at == datetime(2026, 11, 26, 6, 0, 1, tzinfo=UTC)


def test_one_component_and_what_is_new(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def goes_on(_: float) -> None:
        with home.log("stream").open("a") as log:
            log.write(' a line"}\n2026-11-26 06:00:03,000 INFO more\n')

    monkeypatch.setattr("cdclake.log_line.time", SimpleNamespace(sleep=goes_on))
    lines = log_lines(home, "stream", LONG_AGO, follow=True)
    assert [next(lines).text for _ in range(4)][2:] == ['{"half a line"}', "INFO more"]


def test_a_log_that_is_created_later_is_followed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def starts(_: float) -> None:
        home.log("verify_tables").write_text("2026-11-26 06:00:09,000 INFO a job\n")

    monkeypatch.setattr("cdclake.log_line.time", SimpleNamespace(sleep=starts))
    lines = log_lines(home, None, LONG_AGO, follow=True)
    found = [next(lines) for _ in range(8)][-1]
    assert (found.component, found.text) == ("verify_tables", "INFO a job")


def test_old_lines_are_left_out(home: Home) -> None:
    assert list(log_lines(home, None, datetime.now(UTC), follow=False)) == []


def test_what_is_not_there_is_said(home: Home, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="choose one of connect, postgres, stream"):
        next(log_lines(home, "kafka", LONG_AGO, follow=False))
    with pytest.raises(NotRunning):
        next(log_lines(Home(tmp_path / "none"), None, LONG_AGO, follow=False))


@pytest.mark.parametrize("begin", ["[2026-11-26 06:00:01,900] INFO x\n", STREAM])
def test_lines_before_the_first_time_of_a_log_are_not_its_newest(home: Home, begin: str) -> None:
    home.log("kafka").write_text(f"Formatting metadata\n{begin}")
    found = [line.text for line in log_lines(home, None, LONG_AGO, follow=False)]
    assert "Formatting metadata" in found[:-2]
    assert found[-2:] == ["[7] x@y STATEMENT:  SELECT a", "\tFROM t"]


CRASH = "[2026-11-26 06:00:00,100] ERROR out of memory (io.debezium)\n"


def test_lines_of_before_a_rotation_belong_to_their_component(home: Home) -> None:
    rotated_log(home.log("connect")).write_text(f"first words\n{CRASH}")
    rotated_log(home.log("stream")).write_text("a file that is too old to be read\n")
    os.utime(rotated_log(home.log("stream")), (0, 0))
    since = datetime(2026, 1, 1, tzinfo=UTC)
    found = [(line.component, line.text) for line in log_lines(home, None, since, follow=False)]
    assert found[:3] == [
        ("connect", "first words"),
        ("connect", "ERROR out of memory (io.debezium)"),
        ("postgres", '[7] x@y ERROR:  column "a" does not exist'),
    ]
    assert len(found) == 9
    [*_, last] = log_lines(home, "connect", since, follow=False)
    assert last.text == "java.lang.Error: x"


def test_a_log_that_is_rotated_while_it_is_followed_loses_no_line(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def restarts(_: float) -> None:
        log = home.log("connect")
        assert not rotated_log(log).exists()  # else the lines would be awaited for ever
        with log.open("a") as opened:
            opened.write(CRASH)
        log.replace(rotated_log(log))
        log.write_text("started\n")

    monkeypatch.setattr("cdclake.log_line.time", SimpleNamespace(sleep=restarts))
    lines = log_lines(home, "connect", LONG_AGO, follow=True)
    assert [next(lines).text for _ in range(4)] == [
        "WARN too slow (io.debezium)",
        "java.lang.Error: x",
        "ERROR out of memory (io.debezium)",
        "started",
    ]


def test_a_component_that_rotates_its_log_moves_it_to_where_logs_looks(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdclake.local.process.child_process.LOG_LIMIT_BYTES", 1)
    rotate(home.log("connect"))
    home.log("connect").touch()
    assert len(list(log_lines(home, "connect", LONG_AGO, follow=False))) == 2
