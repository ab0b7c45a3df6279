"""A contender's process on the contender's core, and the CPU seconds of everything below it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

SURROUNDINGS_CORE, CONTENDER_CORE = 0, 1
ON_CORE = ("taskset", "--cpu-list", str(CONTENDER_CORE))
LOG = "contender.log"
_END_SECONDS = 30.0


def start(command: Sequence[str], env: Mapping[str, str], folder: Path) -> subprocess.Popen[bytes]:
    """Start the command in the folder, on its core, with its output in a log there."""
    with (folder / LOG).open("wb") as log:
        return subprocess.Popen(
            [*ON_CORE, *command], env=env, cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )


def end(process: subprocess.Popen[bytes]) -> None:
    """End the process, if it has not ended."""
    process.terminate()
    try:
        process.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def lifetime_cpu_seconds(root: int) -> float:
    """Return user and system time of a process and all below it, also of those that have ended.

    The kernel adds the times of an ended process to the parent that has waited for it.
    """
    spent = 0.0
    top = psutil.Process(root)
    for process in (top, *top.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            spent += times.user + times.system + times.children_user + times.children_system
    return spent
