"""Memory of this machine. On Glue the driver's machine is of the same worker type as the others."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

_CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")  # "max" without a limit
_CONTAINER_CPU = Path("/sys/fs/cgroup/cpu.max")  # microseconds of CPU in so many; "max" without


def memory_per_core() -> int:
    """Return the bytes of memory of this machine, or of its container, for each of its cores."""
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        size = min(size, int(_CONTAINER_LIMIT.read_text()))
    return size // _cores()


def _cores() -> int:
    """Return the number of cores that Java, and so Spark, takes for its own."""
    cores = os.cpu_count() or 1
    with suppress(OSError, ValueError):
        quota, period = map(int, _CONTAINER_CPU.read_text().split())
        cores = min(cores, math.ceil(quota / period))
    return cores
