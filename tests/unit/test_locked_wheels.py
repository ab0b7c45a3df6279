"""Wheels of a lock file: fetched once, also by commands that run at the same time."""

from __future__ import annotations

import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cdclake.stacks.locked_wheels import LockedWheels


def wheels(folder: Path) -> LockedWheels:
    lock = folder / "requirements.txt"
    lock.write_text("x==1 --hash=sha256:00\n")
    return LockedWheels(
        lock=lock, folder=folder / "wheels" / "jobs", python="3.11", platforms=("any",)
    )


def test_commands_at_the_same_time_fetch_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[str] = []

    def download(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        folder = Path(command[-1])
        assert not folder.exists()
        time.sleep(0.1)
        folder.mkdir(parents=True)
        (folder / "x-1-py3-none-any.whl").touch()
        fetched.append(folder.name)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", download)
    locked = wheels(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(locked.fetch) for _ in range(4)]:
            done.result()
    assert fetched == ["jobs"]
    assert [file.name for file in locked.files()] == ["x-1-py3-none-any.whl"]
