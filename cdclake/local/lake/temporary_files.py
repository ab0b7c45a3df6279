"""Temporary files of Spark: shuffled rows and key indexes, which stay if their process is killed.

Both contain keys, and rows, so an erasure has to remove them.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cdclake.local.process.home import Home
from cdclake.local.process.orphan_processes import environments

LOCAL_DIRS_KEY = "SPARK_LOCAL_DIRS"
_COMPONENT = "spark"


def temporary_files(home: Home, name: str) -> Path:
    """Create the folder of a job's or the stream's temporary files, and return it."""
    folder = home.private_data(_COMPONENT) / name
    folder.mkdir(exist_ok=True)
    return folder


def remove_temporary_files(home: Home) -> None:
    """Remove the files of all processes that have ended, also of those of an earlier version.

    Processes of an earlier version have their files in the folder of all; nothing is removed then.
    """
    folder = home.private_data(_COMPONENT)
    with _locked(folder):
        entries = list(folder.iterdir())
        used = {environ.get(LOCAL_DIRS_KEY) for environ in environments(home.path)}
        if str(folder) in used:
            return
        for entry in entries:
            if str(entry) not in used:
                shutil.rmtree(entry)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock: jobs that start together would remove the same files."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
