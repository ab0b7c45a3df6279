"""Jars that are fetched from Maven Central when a command first needs them.

`jars.lock` has the URL and the SHA-256 of each. An installation fetches every profile, and its
wheel contains the jars of this project. In a clone `make setup` fetches most profiles by Maven;
only the optional ones are fetched here.
"""

from __future__ import annotations

import hashlib
import io
import os
import platform
import shutil
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException, IncompleteRead
from pathlib import Path
from threading import Lock

from cdclake.activity import Advance, Step, is_shown, step
from cdclake.cache_lock import locked_cache
from cdclake.errors import InputError
from cdclake.jar_lock import (
    OPTIONAL_PROFILES,
    OWN_JARS,
    REPOSITORY,
    jar_name,
    parse_jar_lock,
    parse_jar_urls,
)
from cdclake.places import IS_INSTALLED, JAR_LOCK, JARS, RESOURCES, other_cache

POSTGRES_DIST, _POSTGRES = "postgres-dist", "postgres"
_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
COMMON_PLATFORM = "linux-amd64"
MIRROR_KEY = "CDCLAKE_MAVEN_MIRROR"
_CONNECTIONS = 8
_TIMEOUT_S = 60.0
_CHUNK_BYTES = 1 << 18


class _Fetched:
    """Jars and bytes that threads have fetched, as the progress of a step."""

    def __init__(self, shown: Step, total: int) -> None:
        self._shown, self._total = shown, total
        self._jars = self._bytes = 0
        self._lock = Lock()
        self.add()

    def add(self, *, jars: int = 0, size: int = 0) -> None:
        """Note further jars and bytes."""
        with self._lock:
            self._jars += jars
            self._bytes += size
            advance = Advance(done=self._jars, total=self._total, unit="jars", size=self._bytes)
            self._shown.note(advance)


def ensure_fetched(folder: Path) -> Path:
    """Return the folder of a profile's jars, and fetch it if it is missing.

    In a clone only the optional profiles are fetched: `make setup` builds or fetches the others.

    Raises:
        InputError: if a jar cannot be fetched or written, or is not the locked one.
    """
    is_fetched_here = IS_INSTALLED or folder.name in OPTIONAL_PROFILES
    if is_fetched_here and folder.parent == JARS and not folder.is_dir():
        fetch_jars(folder)
    return folder


def fetch_jars(folder: Path) -> None:
    """Fetch the locked jars of the profile that the folder is named after, all of them or none."""
    with step(f"fetch the jars of {folder.name}") as shown, locked_cache(folder.parent):
        if folder.is_dir():
            return  # another process was first
        try:
            _fill(folder, shown)
        except OSError as error:  # a full or read-only disk
            raise InputError(
                f"the cache {folder.parent} cannot be written: {error.strerror or error}",
                f"free space there{other_cache()}",
            ) from None


def _fill(folder: Path, shown: Step) -> None:
    if folder.name == POSTGRES_DIST:
        jars = folder.with_name(postgres_profile(platform.system(), platform.machine()))
        if not jars.is_dir():
            _fetch(jars, shown)
        unpack_postgres(jars, folder)
    else:
        _fetch(folder, shown)


def platform_name(system: str, machine: str) -> str:
    """Return the name of a platform as the lock spells it.

    >>> platform_name("Linux", "x86_64")
    'linux-amd64'
    """
    return f"{system.lower()}-{_ARCHITECTURES.get(machine.lower(), machine)}"


def postgres_profile(system: str, machine: str) -> str:
    """Return the profile of PostgreSQL's binaries for a platform, which may not be locked.

    >>> postgres_profile("Linux", "x86_64"), postgres_profile("Darwin", "arm64")
    ('postgres', 'postgres-darwin-arm64')
    """
    found = platform_name(system, machine)
    return _POSTGRES if found == COMMON_PLATFORM else f"{_POSTGRES}-{found}"


def check_locked(profile: str) -> None:
    """Raise InputError if the lock has no jars of the profile."""
    profiles = {name.partition("/")[0] for name in parse_jar_lock(JAR_LOCK.read_text())}
    if profile in profiles:
        return
    if not profile.startswith(f"{_POSTGRES}-"):
        raise InputError(f"{JAR_LOCK} has no jars {profile!r}", "reinstall cdclake")
    others = sorted(name.removeprefix(f"{_POSTGRES}-") for name in profiles if "-linux-" in name)
    raise InputError(
        f"cdclake has no PostgreSQL for {profile.removeprefix(f'{_POSTGRES}-')}",
        f"use {' or '.join([COMMON_PLATFORM, *others])}, or an existing database as --source",
    )


def _fetch(folder: Path, shown: Step) -> None:
    check_locked(folder.name)
    lock, urls = (parse(JAR_LOCK.read_text()) for parse in (parse_jar_lock, parse_jar_urls))
    names = [name for name in lock if name.startswith(f"{folder.name}/")]
    if not is_shown():  # as during `cdk synth`
        sys.stderr.write(f"fetching {len(names)} jars of {folder.name} to {folder}\n")
    fetched = _Fetched(shown, len(names))
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    fresh = temporary / folder.name
    fresh.mkdir()
    try:
        with ThreadPoolExecutor(_CONNECTIONS) as pool:
            for _ in pool.map(
                lambda name: _download(urls[name], lock[name], fresh, fetched), names
            ):
                pass
        if folder.name in OWN_JARS:
            shutil.copy(RESOURCES / OWN_JARS[folder.name], fresh)
        put_in_place(fresh, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _download(url: str, digest: str, folder: Path, fetched: _Fetched) -> None:
    """Download a jar, and check it before it gets its name."""
    url = os.environ.get(MIRROR_KEY, REPOSITORY).rstrip("/") + "/" + url.removeprefix(REPOSITORY)
    jar = folder / url.rpartition("/")[2]
    try:
        content = _read(url, fetched)
    except (OSError, HTTPException, ValueError) as error:  # ValueError: the mirror is no URL
        raise InputError(
            f"{url} cannot be fetched: {error}",
            f"check the network, or set {MIRROR_KEY} to a mirror of Maven Central",
        ) from None
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise InputError(
            f"{url} has the SHA-256 {found}, but {jar_name(jar)} is locked with {digest}",
            "do not use what this repository serves, and report it",
        )
    jar.write_bytes(content)
    fetched.add(jars=1)


def _read(url: str, fetched: _Fetched) -> bytes:
    content = bytearray()
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:
        while chunk := answer.read(_CHUNK_BYTES):
            content += chunk
            fetched.add(size=len(chunk))
        missing = int(answer.headers.get("Content-Length") or 0) - len(content)
    if missing > 0:  # a read of a part does not raise for a connection that ended early
        raise IncompleteRead(bytes(content), missing)
    return bytes(content)


def unpack_postgres(jars: Path, place: Path) -> None:
    """Unpack PostgreSQL's binaries, a .txz in its jar, readable by the user that will run them."""
    jar = next(jars.glob("embedded-postgres-binaries-*.jar"))
    fresh = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        with zipfile.ZipFile(jar) as outer:
            name = next(n for n in outer.namelist() if n.endswith(".txz"))
            packed = io.BytesIO(outer.read(name))
        with tarfile.open(fileobj=packed, mode="r:xz") as inner:
            # Python before 3.11.4 has no filters; there the locked digest is the only check.
            inner.extraction_filter = getattr(tarfile, "data_filter", lambda member, _: member)
            inner.extractall(fresh)
        put_in_place(fresh, place)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def put_in_place(fresh: Path, place: Path) -> None:
    """Replace `place` with `fresh`, readable by everyone (mkdtemp creates private folders)."""
    fresh.chmod(0o755)
    os.sync()  # a folder that exists is complete, also after a power failure
    if place.exists():
        shutil.rmtree(place)
    fresh.rename(place)
