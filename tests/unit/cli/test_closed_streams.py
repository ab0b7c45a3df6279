"""Commands whose standard streams are closed, or read by a program that has ended."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cdclake import places
from cdclake.cli import output
from cdclake.cli.main import main
from cdclake.errors import InputError

COMMAND = f'exec "{sys.executable}" -m cdclake.cli.main'
PROJECT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("command", ["schema", "runbook", "--version --json"])
def test_closed_pipe_ends_a_command_without_error(command: str, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        ["sh", "-c", f"{COMMAND} {command}"],
        stdout=writer,
        stderr=subprocess.PIPE,
        env=_environment(tmp_path),
        check=False,
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [("snapshots t --json 2>&-", 3), ("sql <&-", 2), ("status >&-", 3)],
)
def test_closed_streams_keep_the_exit_code(arguments: str, code: int, tmp_path: Path) -> None:
    ended = subprocess.run(
        ["sh", "-c", f"{COMMAND} {arguments}"],
        capture_output=True,
        env=_environment(tmp_path),
        check=False,
    )
    assert ended.returncode == code, ended


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("runbook --json", 4, '"standard output cannot be written: No space left on device"'),
        ("runbook", 4, "error: standard output cannot be written: No space left on device"),
        ("status --json", 3, '"code": "not_running"'),
    ],
)
def test_full_disk_of_the_output_is_an_error(
    arguments: str, code: int, message: str, tmp_path: Path
) -> None:
    ended = subprocess.run(
        ["sh", "-c", f"{COMMAND} {arguments} >/dev/full"],
        stderr=subprocess.PIPE,
        env=_environment(tmp_path),
        check=False,
    )
    assert ended.returncode == code
    shown = ended.stderr.decode()
    assert message in shown and "Traceback" not in shown


def test_unusable_home_is_an_error(tmp_path: Path) -> None:
    ended = subprocess.run(
        ["sh", "-c", f"{COMMAND} status --json"],
        capture_output=True,
        env={**_environment(tmp_path), "CDCLAKE_HOME": "~nosuchuser/x"},
        check=False,
    )
    error = json.loads(ended.stdout)["error"]
    assert ended.returncode == 2
    assert error["message"].startswith("CDCLAKE_HOME=~nosuchuser/x cannot be used: ")


def test_deleted_current_folder_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(places, "IS_INSTALLED", True)
    monkeypatch.delenv("CDCLAKE_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    with pytest.raises(SystemExit) as ended:
        main(["status", "--json"])
    error = json.loads(capsys.readouterr().out)["error"]
    assert ended.value.code == 2 and "the current folder cannot be used" in error["message"]


def test_failure_that_cannot_be_shown_has_an_error_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("CDCLAKE_HOME", str(tmp_path / "lake"))
    monkeypatch.setattr(sys.modules["cdclake.cli.main"], "emit_error", refuse)
    with pytest.raises(SystemExit) as ended:
        main(["status"])
    assert ended.value.code == 4


def test_lines_are_written_at_once_and_escaped_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controller, terminal = os.openpty()
    with os.fdopen(terminal, "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdout", stream)
        output.say("a\x1b[2Jb\tc")
        assert os.read(controller, 100) == b"a\\x1b[2Jb\tc\r\n"
    os.close(controller)


def test_errors_are_escaped_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    controller, terminal = os.openpty()
    with os.fdopen(terminal, "w", encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        output.emit_error(InputError("no column a\x1b[2J", "declare it"), as_json=False)
        stream.flush()
        assert os.read(controller, 200).splitlines()[0] == b"error: no column a\\x1b[2J"
    os.close(controller)


def test_files_keep_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    output.say("a\x1b[2Jb")
    assert capsys.readouterr().out == "a\x1b[2Jb\n"


def _environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**kept, "CDCLAKE_HOME": str(home / "lake"), "PYTHONPATH": str(PROJECT)}
