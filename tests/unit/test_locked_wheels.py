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


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that a stand-in for pip has filled."""
    found: list[str] = []

    def download(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        folder = Path(command[-1])
        assert not folder.exists()
        time.sleep(0.1)
        folder.mkdir(parents=True)
        (folder / "x-1-py3-none-any.whl").touch()
        found.append(folder.name)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", download)
    return found


def test_commands_at_the_same_time_fetch_once(tmp_path: Path, fetched: list[str]) -> None:
    locked = wheels(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(locked.fetch) for _ in range(4)]:
            done.result()
    assert fetched == ["jobs"]
    assert [file.name for file in locked.files()] == ["x-1-py3-none-any.whl"]


def test_a_clone_fetches_missing_and_outdated_wheels(tmp_path: Path, fetched: list[str]) -> None:
    locked = wheels(tmp_path)
    for _ in range(2):
        assert [file.name for file in locked.files()] == ["x-1-py3-none-any.whl"]
    assert fetched == ["jobs"]
    locked.lock.write_text("x==2 --hash=sha256:00\n")
    assert len(locked.files()) == 1
    assert fetched == ["jobs", "jobs"]
