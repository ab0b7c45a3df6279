"""Reproducible zips, named by a hash of their content."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path

from cdclake.file_state import FileState
from cdclake.places import BUILD, PACKAGE

BUILT = BUILD / "deployed"
_EPOCH = (1980, 1, 1, 0, 0, 0)
_HASH_DIGITS = 12
# `jobs`, `stacks` and `functions` are links to folders of the project. `config` needs pydantic;
# deployed code reads the resolved plan. `cost` and `deployed` are for an operator's machine.
_NOT_SHARED = (
    *("cli", "config", "cost", "deployed", "functions", "jobs", "local", "resources", "scaffold"),
    "stacks",
)


@dataclass(frozen=True, slots=True)
class BuiltZip:
    """Zip file with the digest of its content."""

    path: Path
    digest: str


def modules(*packages: str) -> dict[str, bytes]:
    """Return the shared modules of `cdclake` and those of `packages`, by their name in a zip."""
    folders = [entry for entry in PACKAGE.iterdir() if entry.name not in _NOT_SHARED]
    folders += [PACKAGE / package for package in packages]
    return {
        (Path(PACKAGE.name) / folder.name / file).as_posix(): (folder / file).read_bytes()
        for folder in folders
        for file in _files(folder)
    }


def transform_files(folder: Path) -> dict[str, bytes]:
    """Return the files of a user's transform by their path in the folder, without caches."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    }


def _files(folder: Path) -> Iterator[Path]:
    """Yield the Python files relative to `folder`, which may be a link."""
    if folder.is_file():
        yield from [Path()] if folder.suffix == ".py" else []
    else:
        real = folder.resolve()
        yield from (file.relative_to(real) for file in real.rglob("*.py"))


def pack(name: str, files: Mapping[str, bytes]) -> BuiltZip:
    """Return the zip of these files below build/; create it if it does not exist."""
    content = zipped(files)
    digest = hashlib.sha256(content).hexdigest()[:_HASH_DIGITS]
    target = BUILT / f"{name}-{digest}.zip"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = target.with_suffix(f".{os.getpid()}")  # another process may build the same zip
        fresh.write_bytes(content)
        fresh.replace(target)
    return BuiltZip(target, digest)


def pack_files(
    name: str, files: Mapping[str, Path], texts: Mapping[str, str] | None = None
) -> BuiltZip:
    """Return the zip of these files and texts, by their names in it.

    Packs unchanged files once: the environments of an app have the same jars and wheels.
    """
    states = tuple((entry, FileState.of(path)) for entry, path in files.items())
    return _pack_states(name, states, tuple((texts or {}).items()))


@cache
def _pack_states(
    name: str, files: tuple[tuple[str, FileState], ...], texts: tuple[tuple[str, str], ...]
) -> BuiltZip:
    content = {entry: file.path.read_bytes() for entry, file in files}
    return pack(name, content | {entry: text.encode() for entry, text in texts})


def zipped(files: Mapping[str, bytes]) -> bytes:
    """Return an uncompressed zip: another zlib would change the bytes and restart the stream."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, content)
    return buffer.getvalue()
