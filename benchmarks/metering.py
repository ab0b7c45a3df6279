"""Seconds, CPU seconds and memory of a stretch of work, of this process and all it has started."""

from __future__ import annotations

import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
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


def medians(figures: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the median `seconds` and `cpu_seconds` of some stretches of work."""
    names = ("seconds", "cpu_seconds")
    return {name: round(statistics.median(each[name] for each in figures), 3) for name in names}


class _Sampler(threading.Thread):
    """Looks at every process now and then: what one has spent that ends meanwhile, its last look
    tells. Its parent's count would not: of a job's Java nobody waits for the end.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak_mib = 0
        self._spent: dict[psutil.Process, float] = {}
        self._ended = threading.Event()
        self._look()

    def run(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            self._look()

    def stop(self) -> None:
        self._ended.set()
        self.join()

    def spent_by_ended(self, living: list[psutil.Process]) -> float:
        """CPU seconds, all their lives, of those that were there and are not among the living."""
        return sum(self._spent[process] for process in self._spent.keys() - set(living))

    def _look(self) -> None:
        resident = 0
        for process in processes_below():
            try:
                times = process.cpu_times()
                resident += process.memory_info().rss
            except psutil.NoSuchProcess:
                continue
            self._spent[process] = times.user + times.system
        self.peak_mib = max(self.peak_mib, resident // _MEBIBYTE)


@contextmanager
def metered() -> Iterator[Meter]:
    """Measures what happens in the block, in every process below this one.

    Of a process that ends within it the last tenth of a second is not counted.
    """
    meter, sampler = Meter(), _Sampler()
    before = cpu_by_thread(processes_below())
    sampler.start()
    started = time.monotonic()
    try:
        yield meter
    finally:
        meter.seconds = time.monotonic() - started
        sampler.stop()
        living = processes_below()
        by_kind = cpu_by_kind(before, cpu_by_thread(living), sampler.spent_by_ended(living))
        meter.peak_mib = sampler.peak_mib
        meter.cpu_seconds = sum(by_kind.values())
        meter.cpu_by_kind = {kind: round(seconds, 2) for kind, seconds in by_kind.items()}


def cpu_seconds() -> float:
    """User and system time so far of this process and all below it."""
    return sum(cpu_by_thread(processes_below()).values())


def cpu_by_program(root: int) -> dict[str, float]:
    """Sum user and system time so far of a process and all below it, by the programs' names."""
    spent: defaultdict[str, float] = defaultdict(float)
    for process in processes_below(root):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            spent[process.name()] += times.user + times.system
    return spent


def processes_below(root: int | None = None) -> list[psutil.Process]:
    """Return a process (this one, if none is named) and all below it."""
    top = psutil.Process(root)
    return [top, *top.children(recursive=True)]
