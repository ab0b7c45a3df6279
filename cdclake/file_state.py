"""State of a file, by which a process sees that it has not changed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FileState:
    """Path, size in bytes and time of modification in nanoseconds of a file."""

    path: Path
    size: int
    modified_ns: int

    @classmethod
    def of(cls, path: Path) -> FileState:
        """Read the state of the file; OSError if there is none."""
        found = path.stat()
        return cls(path, found.st_size, found.st_mtime_ns)
