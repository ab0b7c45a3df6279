"""Who spends the CPU seconds of a measurement: Java's threads by what they are there for.

Linux counts each thread's time, and Java names its threads; the kernel keeps 15 letters of a name.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

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


def cpu_by_kind(processes: list[psutil.Process]) -> Mapping[str, float]:
    """CPU seconds so far, by kind; those of threads that have ended are with the driving ones."""
    spent: defaultdict[str, float] = defaultdict(float)
    for process in processes:
        try:
            whole = sum(process.cpu_times()[:2])
            if process.name() != "java":
                spent[PYTHON] += whole
                continue
            living = _of_threads(process.pid)
        except psutil.NoSuchProcess:
            continue
        for kind, seconds in living.items():
            spent[kind] += seconds
        spent[DRIVING] += whole - sum(living.values())
    return spent


def kind_of(name: str) -> str:
    """What Java's thread of this name is there for."""
    return next((kind for begin, kind in _KINDS.items() if name.startswith(begin)), DRIVING)


def _of_threads(pid: int) -> Mapping[str, float]:
    spent: defaultdict[str, float] = defaultdict(float)
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            text = (task / "stat").read_text()
        except FileNotFoundError:  # it has ended since
            continue
        name, fields = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :]
        user, system = fields.split()[11:13]
        spent[kind_of(name)] += (int(user) + int(system)) / _TICKS
    return spent
