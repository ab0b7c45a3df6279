"""Memory of this machine. On Glue the driver's machine is of the same worker type as the others."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")  # "max" without a limit


def memory_per_core() -> int:
    """Return the bytes of memory of this machine, or of its container, for each core."""
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with suppress(OSError, ValueError):
        size = min(size, int(_CONTAINER_LIMIT.read_text()))
    return size // (os.cpu_count() or 1)
