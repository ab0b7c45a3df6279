"""Lock of a cache folder: two commands must not fetch the same files."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cdclake.errors import InputError
from cdclake.places import other_cache


@contextmanager
def locked_cache(folder: Path) -> Iterator[None]:
    """Create the folder, and hold its lock; wait for another command that has it.

    Raise InputError if the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise InputError(
            f"the cache {folder} cannot be used: {error.strerror}",
            f"make it writable{other_cache()}",
        ) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
