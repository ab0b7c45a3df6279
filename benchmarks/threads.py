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
    "iceberg-": "files",
}
DRIVING = "driving"  # Java's other threads: queries are planned and their code is made there
PYTHON = "python"
_TICKS = os.sysconf("SC_CLK_TCK")


class Thread(NamedTuple):
    """A thread, or what a process has spent but for the threads that it has now (number 0)."""

    process: int
    number: int
    begun: int  # in ticks since the machine's start: numbers are given again
    kind: str


def cpu_by_thread(processes: list[psutil.Process]) -> Mapping[Thread, float]:
    """CPU seconds so far. Of a process that is not Java's, all of them, as one thread's."""
    spent: dict[Thread, float] = {}
    for process in processes:
        try:
            whole = sum(process.cpu_times()[:2])
            living = _threads_of(process.pid) if process.name() == "java" else {}
            kind = DRIVING if living else PYTHON
        except psutil.NoSuchProcess:
            continue
        spent |= living
        spent[Thread(process.pid, 0, 0, kind)] = whole - sum(living.values())
    return spent


def cpu_by_kind(
    before: Mapping[Thread, float], after: Mapping[Thread, float]
) -> Mapping[str, float]:
    """CPU seconds between two looks; what ended threads spent between them counts as driving."""
    spent: defaultdict[str, float] = defaultdict(float)
    for thread, seconds in after.items():
        spent[thread.kind] += seconds - before.get(thread, 0.0)
    processes = {thread.process for thread in after}
    for thread in before.keys() - after.keys():
        if thread.process in processes:  # it has ended: its seconds of before are not of between
            spent[DRIVING] -= before[thread]
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
