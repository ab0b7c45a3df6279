"""Archive of a folder: the same bytes for the same files, whoever packs it and whenever."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path


def pack(folder: Path, archive: Path) -> None:
    """Write the folder's files, by name, without times and owners."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            entry = tarfile.TarInfo(str(file.relative_to(folder)))
            entry.size, entry.mode = file.stat().st_size, 0o644
            with file.open("rb") as content:
                tar.addfile(entry, content)
    archive.write_bytes(gzip.compress(plain.getvalue(), mtime=0))


def unpack(archive: Path, folder: Path) -> None:
    """Write the archive's files below the folder."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
