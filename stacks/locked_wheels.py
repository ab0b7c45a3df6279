"""Deployed Python packages: the wheels of a lock file, fetched by hash by `make plugins`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from cdclake.errors import InputError

STAMP = "locked.sha256"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedWheels:
    """Wheels of `lock` in `folder`, for one Python version and its platforms."""

    lock: Path
    folder: Path
    python: str
    platforms: tuple[str, ...]

    def digest(self) -> str:
        """Return the digest of the lock file, which is stored next to the fetched wheels."""
        return hashlib.sha256(self.lock.read_bytes()).hexdigest()

    def are_fetched(self) -> bool:
        """Return whether the folder has the wheels of the current lock file."""
        stamp = self.folder / STAMP
        return stamp.is_file() and stamp.read_text() == self.digest()

    def files(self) -> list[Path]:
        """Return the wheels; raise InputError if they have not been fetched."""
        if not self.are_fetched():
            raise InputError(
                f"packages of {self.lock} are missing in {self.folder}", "run `make plugins`"
            )
        return sorted(self.folder.glob("*.whl"))
