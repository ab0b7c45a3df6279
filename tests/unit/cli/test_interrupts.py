"""Signals: Ctrl-C ends commands that run until they are interrupted with 0, others with 130."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import ThreadingHTTPServer
from typing import Any

import pytest

from cdclake.cli import main as command
from cdclake.cli import metrics
from cdclake.local import log_files, metrics_server
from cdclake.log_line import LogLine

LINE = LogLine(datetime(2026, 11, 26, 6, 0, 1, tzinfo=UTC), "stream", "batch 1")


def interrupted(*_: Any, **__: Any) -> Iterator[LogLine]:
    yield LINE
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("words", "code", "printed"), [(("--follow",), 0, 1), (("-f", "--json"), 0, 1), ((), 130, 1),
    (("--json",), 130, 0)],
)  # fmt: skip
def test_interrupt_of_logs(
    words: tuple[str, ...], code: int, printed: int,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(log_files, "log_lines", interrupted)
    with pytest.raises(SystemExit) as ended:
        command.main(["logs", *words])
    assert ended.value.code == code
    assert capsys.readouterr().out.count("batch 1") == printed


def test_interrupt_of_served_metrics(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = metrics_server.metrics_server
    monkeypatch.setattr(metrics, "local_status", dict)
    monkeypatch.setattr(metrics_server, "metrics_server", lambda _, page: server(0, page))
    monkeypatch.setattr(ThreadingHTTPServer, "serve_forever", lambda _: next(interrupts()))
    with pytest.raises(SystemExit) as ended:
        command.main(["metrics", "--serve", "9000", "--json"])
    assert ended.value.code == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True


def interrupts() -> Iterator[None]:
    raise KeyboardInterrupt
    yield


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_commands_end_in_order(monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    undone: list[str] = []

    def killed() -> Iterator[LogLine]:
        try:
            os.kill(os.getpid(), number)
            yield LINE
        finally:
            os.kill(os.getpid(), number)  # of the closed terminal, again
            undone.append("undone")

    monkeypatch.setattr(log_files, "log_lines", lambda *_, **__: killed())
    before = signal.signal(number, signal.SIG_DFL)  # nohup ignores SIGHUP
    try:
        with pytest.raises(SystemExit) as ended:
            command.main(["logs"])
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)
    assert (ended.value.code, undone) == (128 + number, ["undone"])


@pytest.mark.parametrize("words", [("logs", "--follow"), ("metrics", "--serve", "9000")])
def test_sigterm_ends_commands_that_run_until_then_with_0(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """systemd takes another code for a failure."""

    def killed(*_: Any, **__: Any) -> Iterator[LogLine]:
        os.kill(os.getpid(), signal.SIGTERM)
        yield LINE

    server = metrics_server.metrics_server
    monkeypatch.setattr(log_files, "log_lines", killed)
    monkeypatch.setattr(metrics, "local_status", dict)
    monkeypatch.setattr(metrics_server, "metrics_server", lambda _, page: server(0, page))
    monkeypatch.setattr(ThreadingHTTPServer, "serve_forever", lambda _: next(killed()))
    with pytest.raises(SystemExit) as ended:
        command.main(list(words))
    assert ended.value.code == 0


def test_signal_that_the_caller_ignores_ends_no_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def hung_up() -> Iterator[LogLine]:
        os.kill(os.getpid(), signal.SIGHUP)
        yield LINE

    monkeypatch.setattr(log_files, "log_lines", lambda *_, **__: hung_up())
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        with pytest.raises(SystemExit) as ended:
            command.main(["logs"])
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
    assert ended.value.code == 0 and "batch 1" in capsys.readouterr().out
