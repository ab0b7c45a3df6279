"""Seconds, CPU seconds and memory of a stretch of work, of this process and all it has started."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import psutil

from benchmarks.threads import cpu_by_kind, cpu_by_thread

_SAMPLE_SECONDS = 0.1
_MEBIBYTE = 1 << 20


@dataclass(slots=True)
class Meter:
    """What a stretch of work took; complete when it has ended."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_mib: int = 0  # resident, of all processes together
    cpu_by_kind: dict[str, float] = field(default_factory=dict)  # CPU seconds, by kind of thread

    def figures(self) -> dict[str, Any]:
        """As a run keeps them."""
        return asdict(self)


@contextmanager
def metered() -> Iterator[Meter]:
    """Measures what happens in the block, in every process below this one."""
    meter = Meter()
    ended = threading.Event()
    sampler = threading.Thread(target=_sample, args=(meter, ended), daemon=True)
    before = cpu_by_thread(_tree())
    sampler.start()
    started = time.monotonic()
    try:
        yield meter
    finally:
        meter.seconds = time.monotonic() - started
        ended.set()
        sampler.join()
        by_kind = cpu_by_kind(before, cpu_by_thread(_tree()))
        meter.cpu_seconds = sum(by_kind.values())
        meter.cpu_by_kind = {kind: round(seconds, 2) for kind, seconds in by_kind.items()}


def cpu_seconds(root: int | None = None) -> float:
    """User and system time so far of a process (this one, if none is named) and all below it."""
    return sum(cpu_by_thread(_tree(root)).values())


def _sample(meter: Meter, ended: threading.Event) -> None:
    while not ended.wait(_SAMPLE_SECONDS):
        resident = 0
        for process in _tree():
            try:
                resident += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
        meter.peak_mib = max(meter.peak_mib, resident // _MEBIBYTE)


def _tree(root: int | None = None) -> list[psutil.Process]:
    top = psutil.Process(root)
    return [top, *top.children(recursive=True)]
