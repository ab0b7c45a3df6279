"""Temporary files of Spark: removed once their process has ended."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cdclake.local.lake import temporary_files as module
from cdclake.local.lake.temporary_files import (
    LOCAL_DIRS_KEY,
    remove_temporary_files,
    temporary_files,
)
from cdclake.local.process.home import Home
from cdclake.local.process.orphan_processes import COMPONENT_KEY, HOME_KEY

FILE = "blockmgr-1/cdclake-key-index/x.text"


def leave(folder: Path) -> Path:
    """Leave a file as a killed worker does."""
    file = folder / FILE
    file.parent.mkdir(parents=True)
    file.write_text("ada@example.com")
    return file


@contextmanager
def process(home: Home, folder: Path) -> Iterator[None]:
    """Have a process of the home that writes its temporary files below the folder."""
    marks = {HOME_KEY: str(home.path), COMPONENT_KEY: "stream", LOCAL_DIRS_KEY: str(folder)}
    words = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(
        words, env=os.environ | marks, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as found:
        assert found.stdin is not None and found.stdout is not None
        found.stdout.readline()
        yield
        found.stdin.close()


def test_files_of_ended_processes_are_removed_and_others_stay(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    polls, stream = temporary_files(home, "poll_tables"), temporary_files(home, "stream")
    ended = [leave(polls), leave(home.private_data("spark"))]  # the second of an earlier version
    running = leave(stream)
    with process(home, stream):
        remove_temporary_files(home)
        assert [file.exists() for file in (*ended, running)] == [False, False, True]
    remove_temporary_files(home)
    assert list(home.private_data("spark").iterdir()) == []


def test_a_process_of_an_earlier_version_keeps_its_files(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    folder = home.private_data("spark")
    running = leave(folder)
    with process(home, folder):
        remove_temporary_files(home)
        assert running.exists()


def test_two_jobs_that_start_together_remove_files_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second job starts while the first reads the environments of the processes."""
    home = Home(tmp_path / "home")
    leave(temporary_files(home, "poll_tables"))
    second = threading.Thread(target=remove_temporary_files, args=(home,))

    def no_environments(_: Path) -> list[dict[str, str]]:
        if threading.current_thread() is not second:
            second.start()
            second.join(0.3)
        return []

    monkeypatch.setattr(module, "environments", no_environments)
    remove_temporary_files(home)
    second.join()
    assert list(home.private_data("spark").iterdir()) == []
