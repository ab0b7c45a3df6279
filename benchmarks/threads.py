"""Who spends the CPU seconds of a measurement: Java's threads by what they are there for.

Linux counts each thread's time, and Java names its threads; the kernel keeps 15 letters of a name.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import psutil

# What a thread is there for, by how its name begins; the first that fits.
_KINDS = {
    "C1 Compiler": "compiling",
    "C2 Compiler": "compiling",
    "GC Thread": "collecting",
    "G1 ": "collecting",
    "VM Thread": "collecting",
    "Executor task": "tasks",
    "Source": "tasks",  # Flink's are called by their operators
    "Iceberg": "tasks",
    "Constraint": "tasks",
    "iceberg-": "files",
}
DRIVING = "driving"  # Java's other threads: queries are planned and their code is made there
PYTHON = "python"  # and every other program but Java
ENDED = "ended"  # whatever it was
_TICKS = os.sysconf("SC_CLK_TCK")


class Thread(NamedTuple):
    """A thread, or (number 0) what a process has spent but for its threads of now."""

    process: int
    number: int
    begun: int  # in ticks since the machine's start: numbers are given again
    kind: str


def cpu_by_thread(processes: list[psutil.Process]) -> Mapping[Thread, float]:
    """CPU seconds so far. Of a process that is not Java's, all of them, as one thread's."""
    spent: dict[Thread, float] = {}
    for process in processes:
        try:
            times = process.cpu_times()
            living = _threads_of(process.pid) if process.name() == "java" else {}
        except psutil.NoSuchProcess:
            continue
        rest = Thread(process.pid, 0, 0, DRIVING if living else PYTHON)
        spent |= living
        spent[rest] = times.user + times.system - sum(living.values())
    return spent


def cpu_by_kind(
    before: Mapping[Thread, float], after: Mapping[Thread, float], ended: float = 0.0
) -> Mapping[str, float]:
    """CPU seconds between two looks; what ended threads spent between them counts as driving.

    `ended` is what the processes had spent, all their lives, that have ended since.
    """
    spent: defaultdict[str, float] = defaultdict(float, {ENDED: ended} if ended else {})
    for thread, seconds in after.items():
        spent[thread.kind] += seconds - before.get(thread, 0.0)
    processes = {thread.process for thread in after}
    for thread in before.keys() - after.keys():
        spent[DRIVING if thread.process in processes else ENDED] -= before[thread]
    return spent


def kind_of(name: str) -> str:
    """What Java's thread of this name is there for."""
    return next((kind for begin, kind in _KINDS.items() if name.startswith(begin)), DRIVING)


def _threads_of(pid: int) -> dict[Thread, float]:
    spent: dict[Thread, float] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            text = (task / "stat").read_text()
        except FileNotFoundError:  # it has ended since
            continue
        name, fields = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :]
        user, system, begun = (int(fields.split()[place]) for place in (11, 12, 19))
        spent[Thread(pid, int(task.name), begun, kind_of(name))] = (user + system) / _TICKS
    return spent
