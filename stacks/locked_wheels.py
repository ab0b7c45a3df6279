"""Packages that are deployed: the wheels of a lock file, fetched by hash by `make plugins`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from cdclake.errors import InputError

STAMP = "locked.sha256"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedWheels:
    """The wheels of `lock` in `folder`, for a Python and the platforms that it runs on."""

    lock: Path
    folder: Path
    python: str
    platforms: tuple[str, ...]

    def digest(self) -> str:
        """Of the lock: what lies beside those that were fetched for it."""
        return hashlib.sha256(self.lock.read_bytes()).hexdigest()

    def are_fetched(self) -> bool:
        """Whether all of them are there, and no others."""
        stamp = self.folder / STAMP
        return stamp.is_file() and stamp.read_text() == self.digest()

    def files(self) -> list[Path]:
        """Each wheel; InputError, which says what to run, if they are not there."""
        if not self.are_fetched():
            raise InputError(
                f"packages of {self.lock} are missing in {self.folder}", "run `make plugins`"
            )
        return sorted(self.folder.glob("*.whl"))
