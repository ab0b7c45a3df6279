"""Download of files of one commit, checked by their hashes and kept in the user's cache."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.request import urlopen

from cdclake.errors import InputError
from cdclake.places import CACHE_KEY, cache_folder

_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class PinnedFiles:
    """Files at one address, which names a commit, with the SHA-256 of each."""

    name: str
    address: str
    hashes: Mapping[str, str]

    @property
    def cache(self) -> Path:
        """Return the folder that keeps them, which their hashes name."""
        digest = hashlib.sha256(" ".join(sorted(self.hashes.values())).encode())
        return cache_folder() / f"{self.name}-{digest.hexdigest()[:12]}"

    def fetch(self, remedy: str) -> Path:
        """Download the files that the cache lacks; return its folder.

        Raises InputError with this remedy if a file cannot be had, or is another one.
        """
        folder = self.cache
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for name, expected in self.hashes.items():
                file = folder / name
                if not file.is_file() or hashlib.sha256(file.read_bytes()).hexdigest() != expected:
                    self._download(file, expected, remedy)
        except OSError as error:
            raise InputError(
                f"the cache {folder} cannot be used: {error.strerror or error}",
                f"make it writable, or set {CACHE_KEY} to another folder",
            ) from None
        return folder

    def _download(self, file: Path, expected: str, remedy: str) -> None:
        url = f"{self.address}/{file.name}"
        try:
            with urlopen(url, timeout=_TIMEOUT_S) as answer:
                content = answer.read()
        except (OSError, HTTPException) as error:
            raise InputError(f"could not download {url}: {error}", remedy) from None
        found = hashlib.sha256(content).hexdigest()
        if found != expected:
            raise InputError(f"{url} has the SHA-256 {found}, not {expected}", remedy)
        with tempfile.NamedTemporaryFile(dir=file.parent, delete=False) as part:
            part.write(content)
        Path(part.name).replace(file)
