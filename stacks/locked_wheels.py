"""Deployed Python packages: the wheels of a lock file, fetched by hash when first needed.

`make plugins` fetches them ahead, for machines that are offline later.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

from cdclake.cache_lock import locked_cache
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
        """Return the wheels, fetched if they are missing; raise InputError if pip fails."""
        self.fetch()
        return sorted(self.folder.glob("*.whl"))

    def fetch(self) -> None:
        """Fetch the locked wheels by hash, unless they are present."""
        if self.are_fetched():  # also in a cache that cannot be written
            return
        with locked_cache(self.folder.parent):
            if not self.are_fetched():  # by another command, for which this one has waited
                self._fetch()

    def _fetch(self) -> None:
        rmtree(self.folder, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download"]
        command += ["--quiet", "--require-hashes", "--no-deps", "--only-binary", ":all:"]
        command += ["--implementation", "cp", "--python-version", self.python]
        for platform in self.platforms:
            command += ["--platform", platform]
        command += ["--requirement", str(self.lock), "--dest", str(self.folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise InputError(
                f"pip could not fetch the packages of {self.lock}: {done.stderr.strip()}",
                "check the network and pip's configuration, and run the command again",
            )
        (self.folder / STAMP).write_text(self.digest())
